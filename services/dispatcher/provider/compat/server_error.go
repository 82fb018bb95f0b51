package compat

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"

	"waybill.dev/waybill/protocol/strictjson"
)

// serverError is an error that a server reported: in a response, or in a stream (status 0).
type serverError struct {
	status int
	header http.Header
	body   errorBody
}

// Error returns no text of the server; see failed.
func (*serverError) Error() string { return "the model's server reported an error" }

// errorBody holds the members of errors that distinguish them. They are strings of the server.
type errorBody struct{ code, kind, param, message string }

// readErrors turns error responses into a *serverError. The SDK's own error requires the vendor's
// form, and loses the status of any other.
func readErrors(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	b, _ := io.ReadAll(res.Body) // limited by the client; what was read is enough
	_ = res.Body.Close()         // not used any more
	return nil, &serverError{status: res.StatusCode, header: res.Header, body: parseError(b)}
}

// parseError reads an error document of any known form: {"error":{…}}, {"error":"text"},
// {"message":…}, {"detail":…}, a list of one of these, or plain text.
func parseError(doc []byte) errorBody {
	var list []json.RawMessage
	if json.Unmarshal(doc, &list) == nil && len(list) > 0 {
		return parseError(list[0])
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil || members == nil {
		text, _ := strictjson.String(doc)
		if text == "" && !json.Valid(doc) {
			text = string(doc)
		}
		return errorBody{message: text}
	}
	for _, name := range []string{"error", "detail", "errors"} {
		if inner := members[name]; len(inner) > 0 && string(inner) != "null" && string(inner) != "true" {
			if e := parseError(inner); e != (errorBody{}) {
				return e.or(flatError(members))
			}
		}
	}
	return flatError(members)
}

// flatError reads the members of an error.
func flatError(members map[string]json.RawMessage) errorBody {
	e := errorBody{code: plainText(members["code"]), kind: plainText(members["type"]), param: plainText(members["param"])}
	if e.param == "" {
		e.param = locationOf(members["loc"])
	}
	for _, name := range []string{"message", "msg", "error_message", "failed_generation"} {
		if e.message == "" {
			e.message, _ = strictjson.String(members[name])
		}
	}
	return e
}

// locationOf joins the path of a member in the body, as validators of Python servers report it.
func locationOf(doc json.RawMessage) string {
	var loc []any
	if json.Unmarshal(doc, &loc) != nil {
		return ""
	}
	if len(loc) > 0 && loc[0] == "body" {
		loc = loc[1:]
	}
	var parts []string
	for _, l := range loc {
		parts = append(parts, fmt.Sprint(l))
	}
	return strings.Join(parts, ".")
}

// or fills in what e lacks.
func (e errorBody) or(other errorBody) errorBody {
	for _, m := range []struct {
		own   *string
		other string
	}{{&e.code, other.code}, {&e.kind, other.kind}, {&e.param, other.param}, {&e.message, other.message}} {
		if *m.own == "" {
			*m.own = m.other
		}
	}
	return e
}

// says reports whether any member of the error contains one of the phrases, which are in lower case.
func (e errorBody) says(phrases ...string) bool {
	all := strings.ToLower(e.code + "\n" + e.kind + "\n" + e.param + "\n" + e.message)
	for _, p := range phrases {
		if strings.Contains(all, p) {
			return true
		}
	}
	return false
}
