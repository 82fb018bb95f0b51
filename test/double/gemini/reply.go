package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"waybill.dev/waybill/test/double/vendor"
)

// Reply is a scripted answer. The zero value is an empty answer with finish reason STOP.
type Reply struct {
	// A Status other than 0 and 200 makes the reply an error. Code is its name, such as
	// RESOURCE_EXHAUSTED. The default follows from the status.
	Status        int
	Code, Message string
	// Details are google.rpc details of the error, each with its @type.
	Details []any
	// RetryAfter is the header of that name: seconds, or an HTTP date.
	RetryAfter string
	// Listed wraps the error in a list of one, as the vendor sometimes does.
	Listed bool
	// Header is added to the reply's headers.
	Header http.Header

	// Thoughts come first, as thought parts, if the request includes thoughts.
	Thoughts []string
	// Pieces are the texts of the streamed events.
	Pieces []string
	// Calls are function calls after the pieces.
	Calls []Call
	// Media are inline data parts after the calls.
	Media []Media
	// Blocked answers with a blocked prompt and no candidate.
	Blocked string
	// FinishReason defaults to STOP, or MAX_TOKENS if maxOutputTokens cut the answer. FinishMessage
	// is sent with it.
	FinishReason, FinishMessage string
	// Harm is the category whose rating blocked the answer.
	Harm string
	// Usage defaults to the server's own count. NoUsage omits it.
	Usage   *Usage
	NoUsage bool
	// Model is the model version in the answer. The default is the requested model.
	Model string

	// Wait is the pause before the first byte, Interval that before each event.
	Wait, Interval time.Duration
	// Step, when set, releases one event for each value received.
	Step <-chan struct{}
	// Noise is written unchanged before each event, for example ": ping\r
	// \r
	// ".
	Noise string
	// End is how the stream ends after the pieces.
	End End
	// Cut ends the body early; nil sends all of it.
	Cut *Cut
	// Raw is sent unchanged as the body when ContentType is set; "-" sends no Content-Type.
	Raw, ContentType string
}

// Cut ends a body early.
type Cut = vendor.Cut

// End is how a stream ends.
type End = vendor.End

// The ends of a stream.
const (
	// EndWhole sends the finish reason.
	EndWhole = vendor.EndWhole
	// EndCut closes the connection after the pieces.
	EndCut = vendor.EndCut
	// EndSilent ends the body after the pieces, without a reason.
	EndSilent = vendor.EndSilent
	// EndStall sends nothing more until the client gives up.
	EndStall = vendor.EndStall
	// EndError sends an error event of Status, Code, Message and Details after the pieces.
	EndError = vendor.EndError
	// EndBareError sends that error as a plain document, outside any event.
	EndBareError = vendor.EndOwn
)

// Call is a function call. Args is a JSON object.
type Call struct{ ID, Name, Args string }

// Media is an inline part.
type Media struct {
	MIME string
	Data []byte
	// Thought marks a part made while thinking.
	Thought bool
}

// Usage counts tokens.
type Usage struct{ Prompt, Candidates, Thoughts, Cached, ToolUse, Total int }

func (r Reply) status() int {
	if r.Status == 0 || r.End != EndWhole {
		return http.StatusOK
	}
	return r.Status
}

// call is a request being answered.
type call struct {
	vendor.Call
	request request
}

func (r Reply) write(w http.ResponseWriter, c call) {
	maps.Copy(w.Header(), r.Header)
	if !c.Pause(r.Wait) {
		return
	}
	body := c.Begin(w, r.Cut)
	switch {
	case r.ContentType != "":
		body.Header().Set("Content-Type", r.ContentType)
		if r.ContentType == "-" {
			body.Header()["Content-Type"] = nil
		}
		body.WriteHeader(r.status())
		body.Send(r.Raw)
	case r.status() != http.StatusOK:
		r.writeError(body)
	case c.request.stream && !c.request.listed:
		r.stream(body, c)
	default:
		r.whole(body, c)
	}
}

type errorDoc struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []any  `json:"details,omitempty"`
	} `json:"error"`
}

// codes maps an HTTP status to its name.
var codes = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED",
	499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func (r Reply) errorBody() []byte {
	var d errorDoc
	d.Error.Code, d.Error.Message, d.Error.Status, d.Error.Details = r.Status, r.Message, r.Code, r.Details
	if d.Error.Message == "" {
		d.Error.Message = http.StatusText(r.Status)
	}
	if d.Error.Status == "" {
		d.Error.Status = codes[r.Status]
	}
	if r.Listed {
		return indented([]errorDoc{d})
	}
	return indented(d)
}

func (r Reply) writeError(w http.ResponseWriter) {
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.errorBody()) // the client may have disconnected
}

// indented renders a document as the vendor renders answers other than events.
func indented(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("gemini: " + err.Error())
	}
	return append(b, '\n')
}

// InvalidKey is the vendor's answer to an unknown key. Its status is 400, not 401.
func InvalidKey() *Reply {
	r := invalid("API key not valid. Please pass a valid API key.")
	r.Details = []any{map[string]any{
		"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
		"metadata": map[string]any{"service": "generativelanguage.googleapis.com"},
	}}
	return r
}

// RateLimited is the vendor's answer when a quota is exhausted, such as
// GenerateRequestsPerMinutePerProjectPerModel. delay is its RetryInfo.
func RateLimited(quotaID, delay string) Reply {
	return Reply{Status: http.StatusTooManyRequests, Message: "You exceeded your current quota, please check your plan and billing details.", Details: []any{
		map[string]any{"@type": "type.googleapis.com/google.rpc.Help", "links": []any{map[string]any{"description": "Learn more about Gemini API quotas", "url": "https://ai.google.dev/gemini-api/docs/rate-limits"}}},
		map[string]any{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]any{
			"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": quotaID, "quotaValue": "20",
		}}},
		map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
	}}
}

func invalid(format string, args ...any) *Reply {
	return &Reply{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// violated is an invalid request error that also names the field in its details.
func violated(field, format string, args ...any) *Reply {
	r := invalid(format, args...)
	r.Details = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": []any{map[string]any{"field": field, "description": r.Message}}}}
	return r
}
