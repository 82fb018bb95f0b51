// Package fault defines the errors of the protocol: a code, a sentence for people, and details for
// programs.
//
// Domain code returns [*Error]. [Lookup] returns the HTTP and gRPC status of a code; the transports
// have no mapping of their own. The JSON form is the canonical error envelope
// {error, message, details?} (OpenWOP host contract §9.1).
package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Code identifies an error. Programs switch on it, never on the message.
type Code string

// Error is an error with a code. The zero value is not useful; use New.
type Error struct {
	Code    Code
	Message string
	// Details is the open object of the error envelope; nil when there is none.
	Details map[string]any
	// RetryAfter, when positive, becomes the Retry-After header or metadata.
	RetryAfter time.Duration

	cause error
}

// New returns an error with a formatted message. The message states what is wrong, where, and what
// is allowed. It never contains secrets.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// With returns a copy of e with one more member in its details.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[key] = value
	return &c
}

// Wrap returns a copy of e that records cause for logs and errors.Is. The cause
// never reaches a client.
func (e *Error) Wrap(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// After returns a copy of e with the time after which the caller may retry.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// unprocessable is the member of details that marks a well-formed request that conflicts with the
// state it refers to.
const unprocessable = "unprocessable"

// Unprocessable returns a copy of a validation error with status 422: the request is well-formed
// but does not fit what it answers (OpenWOP host contract §9.2, 422).
func (e *Error) Unprocessable() *Error { return e.With(unprocessable, true) }

// Damaged returns the error of a run whose log is damaged.
func Damaged() *Error {
	return New(LogDamaged, "the log of this run is damaged: the run can be neither read nor continued until the log is restored from a backup")
}

// NoRun returns the error of a run that does not exist, or is another tenant's.
func NoRun() *Error { return New(RunNotFound, "no run of this id in your tenant") }

// Empty returns the error of a required field without a value.
func Empty(field string) *Error { return New(ValidationError, "%s: must not be empty", field) }

// Row returns the mapping of the error to each transport.
func (e *Error) Row() Row {
	r := Lookup(e.Code)
	if e.Code == ValidationError && e.Details[unprocessable] == true {
		r.HTTP, r.GRPC = 422, grpcFailedPrecondition
	}
	return r
}

// Error returns the code, the message and the cause, for logs.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the recorded cause.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is an *Error of the same code, so that
// errors.Is(err, fault.New(fault.RunNotFound, "")) reads as a question.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// As finds the *Error in err's chain.
func As(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// All returns the faults joined in err, in order; for a chain, only the outermost.
func All(err error) []*Error {
	switch e := err.(type) { //nolint:errorlint // inspects the tree itself
	case nil:
		return nil
	case *Error:
		return []*Error{e}
	case interface{ Unwrap() []error }:
		var out []*Error
		for _, part := range e.Unwrap() {
			out = append(out, All(part)...)
		}
		return out
	default:
		return All(errors.Unwrap(err))
	}
}

// CodeOf returns the code in err's chain, InternalError for a foreign error, and the empty code for
// nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := As(err); ok {
		return e.Code
	}
	return InternalError
}

// envelope is the wire form of an error; closed by the protocol.
type envelope struct {
	Error   Code           `json:"error"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

// Envelope renders the canonical error envelope as JSON, masked.
func (e *Error) Envelope() []byte { return e.Masked().Internal() }

// Internal returns the envelope as services of one host exchange it. It is not masked: the redactor
// must see known secrets in full.
func (e *Error) Internal() []byte {
	b, _ := render(envelope{Error: e.Code, Message: e.Message, Details: plain(e.Details)}) // plain returns only what JSON can represent
	return b
}

// render does not escape <, > and &, so that people can read the envelope.
func render(v envelope) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// ParseEnvelope reads a canonical error envelope.
func ParseEnvelope(b []byte) (*Error, error) {
	var v envelope
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("parse error envelope: %w", err)
	}
	if v.Error == "" || v.Message == "" {
		return nil, errors.New("parse error envelope: members error and message are required")
	}
	return &Error{Code: v.Error, Message: v.Message, Details: v.Details}, nil
}
