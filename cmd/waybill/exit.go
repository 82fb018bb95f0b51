package main

import (
	"errors"
	"fmt"
	"io/fs"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// errUsage marks errors of the command line.
var errUsage = exit.With(exit.Usage, errors.New("usage"))

// ofFiles marks what is wrong with files that the command line names as errors of it.
func ofFiles(err error) error {
	_, unread := errors.AsType[*fs.PathError](err)
	if _, refused := fault.As(err); refused || unread {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return err
}

// judged is how a command ends whose envelope was judged; nil when it was accepted.
func judged(outcome accept.Status) error {
	if outcome == accept.Accepted {
		return nil
	}
	return exit.With(exit.Refused, fmt.Errorf("%w: %s", errRefused, outcome))
}
