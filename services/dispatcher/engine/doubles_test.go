package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/dispatcher/engine"
)

// living is the lease of one process. Other processes are alive unless they are in dead.
type living struct {
	process string
	dead    *sync.Map
}

func (l living) Process() string { return l.process }

func (l living) Alive(_ context.Context, process string) (bool, error) {
	_, dead := l.dead.Load(process)
	return !dead, nil
}

// peers finds executors by their process ids.
type peers struct{ of sync.Map }

func (p *peers) NotifyAppended(_ context.Context, process, runID string, pos uint64) (engine.PeerAnswer, error) {
	x, ok := p.of.Load(process)
	if !ok {
		return engine.NotExecuting, fmt.Errorf("%w: no process %s", runlog.ErrUnavailable, process)
	}
	return x.(*engine.Executor).NotifyAppended(runID, pos), nil
}

func (l living) Await(_ context.Context, process string) error {
	if _, dead := l.dead.Load(process); dead || process != l.process {
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
