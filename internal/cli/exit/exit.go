// Package exit says how commands end: the status that the process gives to scripts,
// and the sentence that it gives to people.
package exit

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/protocol/fault"
)

// The statuses of every command.
const (
	Done        = 0
	Failed      = 1 // the run failed or was cancelled, or a check found something
	Usage       = 2 // the command line, or a file that it names, cannot be used
	Waiting     = 3 // the run waits for somebody
	Denied      = 4 // not signed in, or not allowed
	NotFound    = 5
	Refused     = 6 // a conflict, a refusal, a version that does not fit
	Unreachable = 7 // the host cannot be reached, or takes too long
	Interrupted = 130
)

// Help is the part of a command's help that lists the statuses.
const Help = `Exit status: 0 done; 1 the run failed or was cancelled, or a check found something;
2 usage; 3 the run waits for somebody; 4 not signed in, or not allowed; 5 not found;
6 conflict, refused, or version; 7 host unreachable or too slow; 130 interrupted.`

// Error is an error that ends the process with a status of its own.
type Error struct {
	Status int
	Err    error
	// Said: the command has printed all there is to say.
	Said bool
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the error within.
func (e *Error) Unwrap() error { return e.Err }

// With gives an error a status; nil stays nil.
func With(status int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Status: status, Err: err}
}

// Usagef is an error of the command line.
func Usagef(format string, args ...any) error { return With(Usage, fmt.Errorf(format, args...)) }

// Outcome ends a command whose output has said everything already.
func Outcome(status int, why string) error {
	if status == Done {
		return nil
	}
	return &Error{Status: status, Err: errors.New(why), Said: true}
}

// Status is what the process ends with after err.
func Status(err error) int {
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Status
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		if refused.Fault.Code == fault.LogDamaged { // the host is reachable, and a later try does not help
			return Refused
		}
		return ofHTTP(refused.Status)
	}
	if foreign, ok := errors.AsType[*client.ForeignError](err); ok && !errors.Is(err, client.ErrUnreachable) {
		return ofHTTP(foreign.Status)
	}
	if f, ok := fault.As(err); ok {
		return ofFault(f)
	}
	switch {
	case err == nil:
		return Done
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, client.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	case errors.Is(err, client.ErrNoRuns):
		return NotFound
	default:
		return Failed
	}
}

// ofFault is how a command ends that a service refused over gRPC. A code without an
// HTTP status is one of a run, and says that it failed.
func ofFault(f *fault.Error) int {
	if r := f.Row(); r.HTTP != 0 {
		return ofHTTP(r.HTTP)
	}
	return Failed
}

func ofHTTP(status int) int {
	switch {
	case status == 401 || status == 403:
		return Denied
	case status == 404:
		return NotFound
	case status == 429 || status >= 500 && status != 501:
		return Unreachable
	default:
		return Refused
	}
}
