package anthropic

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"waybill.dev/waybill/test/double/vendor"
)

// Reply is a scripted answer. The zero value is an empty answer with stop reason end_turn.
type Reply struct {
	// A Status other than 0 and 200 makes the reply an error of Type and Message. The default of
	// Type follows from the status.
	Status        int
	Type, Message string
	// RetryAfter is the header of that name: seconds, or an HTTP date.
	RetryAfter string
	// Header is added to the reply's headers.
	Header http.Header

	// Thoughts are streamed first, as thinking blocks. The vendor sends them only on request.
	Thoughts []string
	// Pieces are the streamed pieces of the text, or of the forced tool's input.
	Pieces []string
	// ToolCalls follow the pieces.
	ToolCalls []ToolCall
	// Blocks are streamed last: whole content blocks of other kinds.
	Blocks []json.RawMessage
	// StopReason defaults to end_turn, to tool_use with a tool call, and to max_tokens when the
	// request's limit cut the answer.
	StopReason string
	// StopSequence is the sequence that stopped the answer.
	StopSequence string
	// Refusal, when set, makes the stop reason refusal, with these details.
	Refusal *Refusal
	// Usage defaults to this server's own count. A test may set wrong numbers.
	Usage *Usage
	// NoUsage leaves usage out of both events.
	NoUsage bool
	// Model is the model named in the answer. The default is the requested one.
	Model string

	// Wait is the pause before the first byte, Interval that before each piece.
	Wait, Interval time.Duration
	// Step, when set, releases one piece for each value received.
	Step <-chan struct{}
	// Noise adds content that clients must skip: pings, comments, and events, deltas and blocks of
	// unknown kinds.
	Noise bool
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
	// EndWhole sends message_delta and message_stop.
	EndWhole = vendor.EndWhole
	// EndCut closes the connection after the pieces.
	EndCut = vendor.EndCut
	// EndSilent ends the body after the pieces, with neither reason nor stop.
	EndSilent = vendor.EndSilent
	// EndStall sends nothing more until the client gives up.
	EndStall = vendor.EndStall
	// EndError sends an error event of Type and Message after the pieces.
	EndError = vendor.EndError
	// EndOpen is EndWhole and then leaves the body open.
	EndOpen = vendor.EndOwn
)

// ToolCall is a tool call; Input is JSON text.
type ToolCall struct{ ID, Name, Input string }

// Refusal is the reason the model declined. Empty members are null on the wire.
type Refusal struct{ Category, Explanation string }

// Usage counts tokens.
type Usage struct{ Input, CacheWrite, CacheRead, Output, Thinking int }

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
}

// requestID is constant, so that answers are reproducible.
const requestID = "req_double"

func (r Reply) write(w http.ResponseWriter, c call) {
	maps.Copy(w.Header(), r.Header)
	w.Header().Set("Request-Id", requestID)
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
	case c.request.Stream:
		r.stream(body, c)
	default:
		r.whole(body, c)
	}
}

// errorDoc is the vendor's error.
type errorDoc struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id,omitempty"`
}

func (r Reply) errorDoc() errorDoc {
	d := errorDoc{Type: "error"}
	d.Error.Type, d.Error.Message = r.Type, r.Message
	if d.Error.Message == "" {
		d.Error.Message = http.StatusText(r.status())
	}
	if d.Error.Type == "" {
		d.Error.Type = errorType(r.status())
	}
	return d
}

// overloaded is the vendor's own status.
const overloaded = 529

func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusPaymentRequired:
		return "billing_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusNotFound:
		return "not_found_error"
	case status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status == http.StatusGatewayTimeout:
		return "timeout_error"
	case status == overloaded:
		return "overloaded_error"
	case status >= http.StatusInternalServerError, status == http.StatusOK:
		return "api_error"
	default:
		return "invalid_request_error"
	}
}

func (r Reply) writeError(w http.ResponseWriter) {
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status())
	d := r.errorDoc()
	d.RequestID = requestID
	_, _ = w.Write(vendor.JSON(d)) // the client may have disconnected
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
