package main

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Exit statuses. Those from 3 on are of `waybill envelope accept`, and say what
// became of the envelope: scripts go by them.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInvalid     = 3
	exitGated       = 4
	exitBreached    = 5
	exitUnreachable = 6
	exitInterrupted = 130 // what a shell expects of a command ended by Ctrl-C
)

// exitError is an error that ends the process with a status of its own.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// exitStatus is what the process ends with after err.
func exitStatus(err error) int {
	if own, ok := errors.AsType[*exitError](err); ok {
		return own.status
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return exitUsage
	default:
		return exitFailed
	}
}

// judged is how a command ends whose envelope was judged; nil when it was accepted.
func judged(outcome accept.Status) error {
	status := exitFailed
	switch outcome {
	case accept.Accepted:
		return nil
	case accept.Invalid:
		status = exitInvalid
	case accept.Gated:
		status = exitGated
	case accept.Breached:
		status = exitBreached
	}
	return &exitError{status, fmt.Errorf("%w: %s", errRefused, outcome)}
}

// called is how a command ends whose call failed: an acceptor that is away, or
// that lacks what it needs, may be asked again.
func called(err error) error {
	if fault.CodeOf(err) == fault.ServiceUnavailable || errors.Is(err, context.DeadlineExceeded) {
		return &exitError{exitUnreachable, err}
	}
	return err
}
