package execute_test

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/frame"
)

// living is the lease of a process beside others, all of which are alive.
type living struct{ process string }

func (l living) Process() string                           { return l.process }
func (living) Alive(context.Context, string) (bool, error) { return true, nil }

func (l living) Await(_ context.Context, process string) error {
	if process != l.process {
		return errors.New("lease lost")
	}
	return nil
}

type again struct{ f *frame.Frame }

func (a again) Frame() *frame.Frame { return a.f }
func (again) Redelivered() bool     { return false }
func (again) Tries() int            { return 1 }
func (again) Extend() error         { return nil }
func (again) Ack() error            { return nil }
func (again) Retry() error          { return nil }
func (again) Return() error         { return nil }
