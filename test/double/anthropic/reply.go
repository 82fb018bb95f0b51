package anthropic

import (
	"encoding/json"
	"net/http"
	"time"
)

// Reply is what the server answers with. The zero value is an empty answer that
// ended by itself.
type Reply struct {
	// Status other than 0 and 200 makes the reply an error of Type and Message;
	// Type defaults to what goes with the status.
	Status        int
	Type, Message string
	// RetryAfter is the header of that name: seconds, or an HTTP date.
	RetryAfter string
	// Header is added to the reply's headers.
	Header http.Header

	// Thoughts are streamed first, as thinking; the vendor does so only if asked.
	Thoughts []string
	// Pieces are the answer's: of a text, or of the forced tool's input.
	Pieces []string
	// ToolCalls are asked for after the pieces.
	ToolCalls []ToolCall
	// Blocks are streamed last: content blocks of other kinds, whole.
	Blocks []json.RawMessage
	// StopReason defaults to end_turn; to tool_use where a tool is called; to
	// max_tokens where the request's bound cut the answer.
	StopReason string
	// StopSequence is the one that stopped the answer.
	StopSequence string
	// Refusal, when set, makes the stop reason refusal, with these details.
	Refusal *Refusal
	// Usage defaults to what this server counts. A test may lie with it.
	Usage *Usage
	// NoUsage leaves usage out of both events.
	NoUsage bool
	// Model is the one that answers; default the one asked for.
	Model string

	// Wait is the pause before the first byte, Interval that before each piece.
	Wait, Interval time.Duration
	// Gate, when set, is received from before each piece: a drip in the test's hand.
	Gate <-chan struct{}
	// Noise adds what clients must skip: pings, comments, events, deltas and blocks
	// of kinds that are not known.
	Noise bool
	// End is how the stream ends after the pieces.
	End End
	// CutAfter, when not 0, ends the body after so many bytes, before the first one
	// if negative: with a broken connection, or cleanly with CutClean.
	CutAfter int
	CutClean bool
	// Raw, when set, is the whole body of a 200 reply of ContentType, as it is.
	Raw, ContentType string
}

// End is how a stream ends.
type End int

// The ends of a stream.
const (
	// EndWhole sends message_delta and message_stop.
	EndWhole End = iota
	// EndCut closes the connection after the pieces.
	EndCut
	// EndSilent ends the body after the pieces, with neither reason nor stop.
	EndSilent
	// EndStall sends nothing more until the client gives up.
	EndStall
	// EndError sends an error event of Type and Message after the pieces.
	EndError
	// EndOpen is EndWhole and then leaves the body open.
	EndOpen
)

// ToolCall is a call of a tool; Input is JSON text.
type ToolCall struct{ ID, Name, Input string }

// Refusal is why the model declined; empty members are null on the wire.
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
	request request
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
	select {
	case <-timer:
		return true
	case <-c.ended:
		return false
	case <-c.closing:
		return false
	}
}

// pass waits at a gate; false when client or server went away.
func (c call) pass(gate <-chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-c.ended:
		return false
	case <-c.closing:
		return false
	}
}

// requestID is the same for all replies: nothing here depends on chance.
const requestID = "req_double"

func (r Reply) write(w http.ResponseWriter, c call) {
	for name, values := range r.Header {
		w.Header()[name] = values
	}
	w.Header().Set("Request-Id", requestID)
	if !c.pause(r.Wait) {
		return
	}
	switch {
	case r.status() != http.StatusOK:
		r.writeError(w)
	case r.ContentType != "":
		w.Header().Set("Content-Type", r.ContentType)
		o := &out{w: w, reply: r}
		o.write([]byte(r.Raw))
	case c.request.Stream:
		r.stream(w, c)
	default:
		r.whole(w, c)
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
	_, _ = w.Write(marshal(d)) // the client may have gone
}

// marshal renders a document of this package's own types, which always works.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("anthropic double: " + err.Error())
	}
	return b
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
