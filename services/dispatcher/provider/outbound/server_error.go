package outbound

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
)

// ServerError is an error that a server reported: in a response, or in a stream (status 0).
type ServerError struct {
	Status int
	Header http.Header
	Body   ErrorBody
}

// Error returns no text of the server; see provider.Error.
func (*ServerError) Error() string { return "the model's server reported an error" }

// ReadErrors turns error responses of next into a *ServerError. It is a middleware of SDKs, whose own
// errors require the vendor's form, and lose the status of any other.
func ReadErrors(r *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(r)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	b, _ := io.ReadAll(res.Body) // limited by the client; what was read is enough
	_ = res.Body.Close()         // not used any more
	e := &ServerError{Status: res.StatusCode, Header: res.Header, Body: ParseError(b)}
	const soon = time.Hour
	wait := RetryAfter(res.Header)
	e.Body.Soon = wait > 0 && wait <= soon
	return nil, e
}

// ErrorBody holds the members of a server's error that distinguish it. They are strings of the server.
type ErrorBody struct {
	Code, Kind, Param, Message string
	// RetryDelay and QuotaID are those of Google's details.
	RetryDelay, QuotaID string
	// After is a wait in another member, Reset the end of a limit in headers that a gateway quotes.
	After, Reset string
	// Soon means that the response names a time to wait of an hour at most.
	Soon bool
}

// ParseError reads an error document of any known form: {"error":{…}}, {"error":"text"},
// {"message":…}, {"detail":…}, a list of one of these, or plain text.
func ParseError(doc []byte) ErrorBody {
	var list []json.RawMessage
	if json.Unmarshal(doc, &list) == nil && len(list) > 0 {
		return ParseError(list[0])
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil || members == nil {
		text, _ := strictjson.String(doc)
		if text == "" && !json.Valid(doc) {
			text = string(doc)
		}
		return ErrorBody{Message: text}
	}
	members = inLowerCase(members)
	for _, name := range []string{"error", "detail", "errors", "base_resp", "response"} {
		if inner := members[name]; len(inner) > 0 && string(inner) != "null" && string(inner) != "true" {
			e := ParseError(inner)
			if name == "errors" && e == (ErrorBody{}) {
				e = firstError(inner)
			}
			if e != (ErrorBody{}) {
				return e.described(members).or(flatError(members))
			}
		}
	}
	return flatError(members)
}

// inLowerCase adds the members by their names in lower case: Microsoft and Tencent write them as in Error.
func inLowerCase(members map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(members)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if lower := strings.ToLower(name); out[lower] == nil {
			out[lower] = members[name]
		}
	}
	return out
}

// firstError reads a map of the errors of members.
func firstError(doc json.RawMessage) ErrorBody {
	byMember := strictjson.Object(doc)
	for _, name := range slices.Sorted(maps.Keys(byMember)) {
		if e := ParseError(byMember[name]); e != (ErrorBody{}) {
			return e.or(ErrorBody{Param: name})
		}
	}
	return ErrorBody{}
}

// described adds the description of an error whose own text is only its name, as OAuth has it.
func (e ErrorBody) described(members map[string]json.RawMessage) ErrorBody {
	if text, _ := strictjson.String(members["error_description"]); text != "" {
		return e.with(ErrorBody{Message: text})
	}
	return e
}

// flatError reads the members of an error.
func flatError(members map[string]json.RawMessage) ErrorBody {
	first := func(names ...string) (text string) {
		for _, name := range names {
			if text == "" {
				text = PlainText(members[name])
			}
		}
		return text
	}
	e := ErrorBody{
		Code:  first("code", "error_code", "status_code", "statuscode", "status"),
		Kind:  first("type", "__type", "error_type"),
		Param: first("param"),
	}
	if e.Param == "" {
		e.Param = locationOf(members["loc"])
	}
	for _, name := range []string{"message", "msg", "error_message", "error_msg", "errormessage", "status_msg", "failed_generation", "reason", "title"} {
		if e.Message == "" {
			e.Message, _ = strictjson.String(members[name])
		}
	}
	nested := members["message"]
	if strings.HasPrefix(e.Message, "{") { // of a server behind a gateway
		nested = json.RawMessage(e.Message)
	}
	if strictjson.KindOf(nested) == "an object" {
		if inner := ParseError(nested); inner.Message != "" {
			e.Message = ""
			e = e.with(inner)
		}
	}
	e.addDetails(members["details"])
	e.After = first("retry_after", "retryafter", "retry_after_seconds", "retryafterseconds", "resets_in_seconds", "estimated_time")
	if ms := first("retry_after_ms", "retryafterms"); ms != "" {
		e.After = ms + "ms"
	}
	return e.with(innerError(members))
}

// addDetails reads Google's details of a limit.
func (e *ErrorBody) addDetails(doc json.RawMessage) {
	var details []struct {
		RetryDelay string `json:"retryDelay"`
		Violations []struct {
			QuotaID string `json:"quotaId"`
		} `json:"violations"`
	}
	_ = json.Unmarshal(doc, &details) // those of other vendors say nothing
	for _, d := range details {
		e.RetryDelay += d.RetryDelay
		for _, v := range d.Violations {
			e.QuotaID += v.QuotaID + " "
		}
	}
}

// innerError returns the error of another server that a gateway passes on; empty if there is none.
func innerError(members map[string]json.RawMessage) ErrorBody {
	metadata := strictjson.Object(members["metadata"])
	raw := metadata["raw"]
	if text, ok := strictjson.String(raw); ok {
		raw = json.RawMessage(text)
	}
	var e ErrorBody
	if len(raw) > 0 {
		e = ParseError(raw)
	}
	for name, value := range strictjson.Object(metadata["headers"]) {
		switch strings.ToLower(name) {
		case "retry-after":
			e.After = PlainText(value)
		case "x-ratelimit-reset":
			e.Reset = PlainText(value)
		}
	}
	return e
}

// with adds what an inner error says.
func (e ErrorBody) with(inner ErrorBody) ErrorBody {
	if inner.Message != "" && e.Message != "" && inner.Message != e.Message {
		e.Message += ": " + inner.Message
	}
	if inner.Code != "" && strings.Trim(e.Code, "0123456789") == "" { // a status says less
		e.Code = inner.Code
	}
	return e.or(inner)
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
func (e ErrorBody) or(other ErrorBody) ErrorBody {
	for _, m := range []struct {
		own   *string
		other string
	}{{&e.Code, other.Code}, {&e.Kind, other.Kind}, {&e.Param, other.Param}, {&e.Message, other.Message}, {&e.After, other.After}, {&e.Reset, other.Reset}} {
		if *m.own == "" {
			*m.own = m.other
		}
	}
	return e
}

// Says reports whether any member of the error contains one of the phrases, which are in lower case.
func (e ErrorBody) Says(phrases ...string) bool {
	all := strings.ToLower(e.Code + "\n" + e.Kind + "\n" + e.Param + "\n" + e.Message)
	for _, p := range phrases {
		if strings.Contains(all, p) {
			return true
		}
	}
	return false
}

// PlainText returns a string, another value as the server wrote it, and nothing for null, NaN and the
// infinities.
func PlainText(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return strings.Trim(text, "\x7f")
	default:
		return AsSent(string(raw))
	}
}
