package openaicompat

import (
	"maps"
	"net/http"
	"strconv"
	"time"

	"waybill.dev/waybill/test/double/vendor"
)

// Reply is a scripted answer. The zero value is an empty answer with finish reason "stop".
type Reply struct {
	// A Status other than 0 and 200 makes the reply an error of Code, Type, Param and Message. The
	// default of Type follows from the status.
	Status                     int
	Code, Type, Param, Message string
	// RetryAfter is the header of that name: seconds, or an HTTP date.
	RetryAfter string
	// Header is added to the reply's headers.
	Header http.Header

	// Pieces are the contents of the chunks: of the text, of a forced function's arguments, or of
	// the transcript of an audio answer.
	Pieces []string
	// AsText sends Pieces as text even if a function was forced.
	AsText bool
	// Sound is the audio of the answer; Pieces are its transcript.
	Sound []byte
	// Thoughts precede the pieces, as some compatible servers send them.
	Thoughts []string
	// Refusal is streamed after the pieces, as a refusal.
	Refusal string
	// ToolCalls follow the pieces.
	ToolCalls []ToolCall
	// FinishReason defaults to "stop", or "tool_calls" with ToolCalls. As with the vendor, it is
	// "stop" after a forced function.
	FinishReason string
	// Usage defaults to one completion token per piece.
	Usage *Usage
	// Model is the model named in the answer. The default is the requested one.
	Model string

	// Wait is the pause before the first byte, Interval that before each chunk.
	Wait, Interval time.Duration
	// Step, when set, releases one chunk for each value received.
	Step <-chan struct{}
	// Noise is written unchanged before each chunk, for example ": ping
	//
	// ".
	Noise string
	// Cut ends the body early; nil sends all of it.
	Cut *Cut
	// End is how the stream ends after the pieces.
	End End
	// Raw is sent unchanged as the body of a 200 reply when ContentType is set.
	Raw, ContentType string
}

// Cut ends a body early.
type Cut = vendor.Cut

// End is how a stream ends.
type End = vendor.End

// The ends of a stream.
const (
	// EndWhole sends finish reason, usage if requested, and [DONE].
	EndWhole = vendor.EndWhole
	// EndCut closes the connection after the pieces.
	EndCut = vendor.EndCut
	// EndSilent ends the body after the pieces, with neither reason nor [DONE].
	EndSilent = vendor.EndSilent
	// EndStall sends nothing more until the client gives up.
	EndStall = vendor.EndStall
	// EndError sends an error event of Code, Type and Message after the pieces.
	EndError = vendor.EndError
)

// ToolCall is a function call.
type ToolCall struct{ ID, Name, Arguments string }

// Usage counts tokens. As with the vendor, Completion includes Reasoning. Total defaults to Prompt
// + Completion; a test may set a wrong one.
type Usage struct{ Prompt, Completion, Cached, Written, Reasoning, Total int }

func (r Reply) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

// call is a request being answered.
type call struct {
	vendor.Call
	request request
	openai  bool
}

func (r Reply) write(w http.ResponseWriter, c call) {
	maps.Copy(w.Header(), r.Header)
	if !c.Pause(r.Wait) {
		return
	}
	body := c.Begin(w, r.Cut)
	switch {
	case r.status() != http.StatusOK:
		r.writeError(body)
	case r.ContentType != "":
		body.Header().Set("Content-Type", r.ContentType)
		body.Send(r.Raw)
	case c.request.Stream:
		r.stream(body, c)
	default:
		r.whole(body, c)
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
	_, _ = w.Write(vendor.JSON(r.errorBody())) // the client may have disconnected
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

// forced returns the function whose arguments Pieces are, empty for none.
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
