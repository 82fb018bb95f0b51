package openaicompat

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Reply is what the server answers with. The zero value is an empty answer that
// ended by itself.
type Reply struct {
	// Status other than 0 and 200 makes the reply an error, of Code, Type, Param
	// and Message. Type defaults to what goes with the status.
	Status                     int
	Code, Type, Param, Message string
	// RetryAfter is the header of that name: seconds, or an HTTP date.
	RetryAfter string
	// Header is added to the reply's headers.
	Header http.Header

	// Pieces are the contents of the chunks: of the text, of the arguments of a
	// forced function, or of the transcript when sound was asked for.
	Pieces []string
	// AsText keeps Pieces text although a function was forced.
	AsText bool
	// Sound is what is heard beside the transcript.
	Sound []byte
	// Thoughts come before the pieces, as servers show them that do so.
	Thoughts []string
	// Refusal is streamed after the pieces, as a refusal.
	Refusal string
	// ToolCalls are asked for after the pieces.
	ToolCalls []ToolCall
	// FinishReason defaults to "stop", or "tool_calls" with ToolCalls. It is "stop"
	// after a function that was forced, as with the vendor.
	FinishReason string
	// Usage defaults to as many completion tokens as Pieces.
	Usage *Usage
	// Model is the one that answers; default the one asked for.
	Model string

	// Wait is the pause before the first byte, Interval that before each chunk.
	Wait, Interval time.Duration
	// Step, when set, lets one chunk out for each value it gives.
	Step <-chan struct{}
	// Noise is written as it is before each chunk, such as ": ping\n\n".
	Noise string
	// Cut ends the body within the stream; nil for not at all.
	Cut *Cut
	// End is how the stream ends after the pieces.
	End End
	// Raw, when set, is the whole body of a 200 reply of ContentType, as it is.
	Raw, ContentType string
}

// End is how a stream ends.
type End int

// The ends of a stream.
const (
	// EndWhole sends finish reason, usage if asked for, and [DONE].
	EndWhole End = iota
	// EndCut closes the connection after the pieces.
	EndCut
	// EndSilent ends the body after the pieces, with neither reason nor [DONE].
	EndSilent
	// EndStall sends nothing more until the client gives up.
	EndStall
	// EndError sends an error event of Code, Type and Message after the pieces.
	EndError
)

// ToolCall is a function call.
type ToolCall struct{ ID, Name, Arguments string }

// Cut ends a body early.
type Cut struct {
	// At is how many of its bytes are sent.
	At int
	// Clean ends it as if it were whole; otherwise the connection is broken off.
	Clean bool
}

// Usage counts tokens. Completion holds Reasoning, as the vendor counts; Total is
// their sum with Prompt unless it is set, to something that may be a lie.
type Usage struct{ Prompt, Completion, Cached, Written, Reasoning, Total int }

func (r Reply) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

// call is a request being answered.
type call struct {
	request request
	openai  bool
	ended   <-chan struct{}
	closing <-chan struct{}
}

// pause waits for d, for ever if that is negative; false when client or server
// went away.
func (c call) pause(d time.Duration) bool {
	if d == 0 {
		return true
	}
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	return await(c, timer)
}

// await waits for a value; false when client or server went away.
func await[T any](c call, values <-chan T) bool {
	select {
	case <-values:
		return true
	case <-c.ended:
		return false
	case <-c.closing:
		return false
	}
}

func (r Reply) write(w http.ResponseWriter, c call) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	if !c.pause(r.Wait) {
		return
	}
	if r.Cut != nil {
		w = &cutter{ResponseWriter: w, left: r.Cut.At, clean: r.Cut.Clean}
	}
	switch {
	case r.status() != http.StatusOK:
		r.writeError(w)
	case r.ContentType != "":
		w.Header().Set("Content-Type", r.ContentType)
		_, _ = w.Write([]byte(r.Raw)) // the client may have gone
	case c.request.Stream:
		r.stream(w, c)
	default:
		r.whole(w, c)
	}
}

// errorBody is the vendor's error.
type errorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func (r Reply) errorBody() errorBody {
	var b errorBody
	b.Error.Message, b.Error.Type = r.Message, r.Type
	if b.Error.Message == "" {
		b.Error.Message = http.StatusText(r.status())
	}
	if b.Error.Type == "" {
		b.Error.Type = errorType(r.status())
	}
	b.Error.Param, b.Error.Code = optional(r.Param), optional(r.Code)
	return b
}

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (r Reply) writeError(w http.ResponseWriter) {
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status())
	_, _ = w.Write(marshal(r.errorBody()))
}

// marshal renders a document of this package's own types, which always works.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("openaicompat: " + err.Error())
	}
	return b
}

func (r Reply) usage() usageDoc {
	u := Usage{Prompt: 1, Completion: len(r.Pieces)}
	if r.Usage != nil {
		u = *r.Usage
	}
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	d := usageDoc{Prompt: u.Prompt, Completion: u.Completion, Total: u.Total}
	d.Details.Cached, d.Details.Written = u.Cached, u.Written
	if u.Reasoning > 0 {
		d.Spent = &spentDoc{Reasoning: u.Reasoning}
	}
	return d
}

// forced is the function that Pieces are the arguments of, empty for none.
func (r Reply) forced(c call) string {
	if r.AsText || len(r.ToolCalls) > 0 || r.Refusal != "" && len(r.Pieces) == 0 {
		return ""
	}
	return c.request.forced
}

func (r Reply) finish() string {
	switch {
	case r.FinishReason != "":
		return r.FinishReason
	case len(r.ToolCalls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

func (r Reply) model(c call) string {
	if r.Model != "" {
		return r.Model
	}
	return c.request.Model
}

func (r Reply) calls() []toolCallDoc {
	var list []toolCallDoc
	for i, t := range r.ToolCalls {
		d := toolCallDoc{Index: i, ID: t.ID, Type: "function"}
		d.Function.Name, d.Function.Arguments = t.Name, t.Arguments
		if d.ID == "" {
			d.ID = "call_" + strconv.Itoa(i)
		}
		list = append(list, d)
	}
	return list
}
