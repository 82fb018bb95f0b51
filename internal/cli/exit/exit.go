// Package exit maps errors to exit statuses and error messages of commands.
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
	Failed      = 1 // the run failed or was cancelled, or a check failed
	Usage       = 2 // invalid arguments, or a file that cannot be read
	Waiting     = 3 // the run waits for an answer, or to be resumed
	Denied      = 4 // the credential is missing, invalid or not permitted
	NotFound    = 5
	Refused     = 6 // rejected: a conflict, invalid values, an unsupported version
	Unreachable = 7 // the host is unreachable, overloaded or too slow
	Interrupted = 130
)

// Help lists the statuses, for the help of commands.
const Help = `Exit status: 0 success; 1 the run failed or was cancelled, or a check failed; 2 usage; 3 the run
waits for an answer or to be resumed; 4 not authenticated or not permitted; 5 not found; 6 rejected;
7 host unreachable or too slow; 130 interrupted.`

// Error is an error that ends the process with a status of its own.
type Error struct {
	Status int
	Err    error
	// Reported is true if the command has printed the outcome; Report then prints nothing.
	Reported bool
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrUsage) true for every error with the status Usage.
func (e *Error) Is(target error) bool { return target == ErrUsage && e.Status == Usage }

// ErrUsage matches errors in arguments and in the files they name; see Usagef.
var ErrUsage = With(Usage, errors.New("usage"))

// With wraps an error with a status; nil stays nil.
func With(status int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Status: status, Err: err}
}

// Usagef returns an error with the status Usage.
func Usagef(format string, args ...any) error { return With(Usage, fmt.Errorf(format, args...)) }

// Outcome ends a command with a status after it has printed its output.
func Outcome(status int, why string) error {
	if status == Done {
		return nil
	}
	return &Error{Status: status, Err: errors.New(why), Reported: true}
}

// Status returns the exit status for an error.
func Status(err error) int {
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Status
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		if refused.Fault.Code == fault.LogDamaged { // a 500, but retries do not help
			return Refused
		}
		return ofHTTP(refused.Status)
	}
	if foreign, ok := errors.AsType[*client.ForeignError](err); ok && !errors.Is(err, client.ErrUnreachable) {
		return ofHTTP(foreign.Status)
	}
	if _, ok := errors.AsType[*client.UnofferedError](err); ok {
		return Refused
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

// ofFault returns the status of an error of a gRPC service. Codes without an HTTP status are
// failures of runs.
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
