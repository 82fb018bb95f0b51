package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/engine"
)

// Peers sends requests to other dispatchers by their process ids.
type Peers interface {
	// Serve answers requests to a process; it replaces the process that was served before.
	Serve(process string, handle func(data []byte) []byte) error
	// Ask sends a request to a process and returns its answer.
	Ask(ctx context.Context, process string, data []byte) ([]byte, error)
}

// askFor bounds a request to another dispatcher.
const askFor = time.Second

// answers are those of a dispatcher that was asked about a run, by what they mean.
var answers = map[engine.Held]string{engine.Executes: "executes", engine.Covers: "covers"}

// toPeers implements engine.Peers: the request is a run id and a position, the answer one of answers;
// any other is engine.NotHeld.
type toPeers struct{ Peers }

func (p toPeers) Moved(ctx context.Context, process, runID string, pos uint64) (engine.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	answer, err := p.Ask(ctx, process, fmt.Append(nil, runID, " ", pos))
	for held, is := range answers {
		if string(answer) == is {
			return held, err
		}
	}
	return engine.NotHeld, err
}

// peers is nil without them: a nil Peers in an interface would not be.
func (s *Service) peers() engine.Peers {
	if s.deps.Peers == nil {
		return nil
	}
	return toPeers{s.deps.Peers}
}

// answerPeers takes the requests of other dispatchers.
func (s *Service) answerPeers() error {
	if s.deps.Peers == nil {
		return nil
	}
	return s.deps.Peers.Serve(s.leases.Process(), func(request []byte) []byte {
		runID, at, _ := strings.Cut(string(request), " ")
		pos, err := strconv.ParseUint(at, 10, 64)
		if err != nil {
			return nil
		}
		return []byte(answers[s.executor.Moved(runID, pos)])
	})
}

// leaseRetry is the pause before the lease is written again.
const leaseRetry = 500 * time.Millisecond

// openLease writes this process's lease: no run is executed before.
func (s *Service) openLease(ctx context.Context) error {
	if err := s.answerPeers(); err != nil {
		return err
	}
	for {
		err := s.leases.Open(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.deps.Logger.Warn("dispatcher lease not written; trying again", "error", err)
		if !lifecycle.Wait(ctx, leaseRetry) {
			return ctx.Err()
		}
	}
}

// successor acts on leases that were lost or are over; see lease.Handler.
type successor struct{ *Service }

// Lost stops what this process executes: another dispatcher took over its runs.
func (s successor) Lost(string) {
	s.executor.LeaseLost()
	if err := s.answerPeers(); err != nil {
		s.deps.Logger.Warn("requests of other dispatchers are not answered", "error", err)
	}
}

const (
	// ownedPage is how many runs of a dead process are read at a time.
	ownedPage = 500
	// requeuedAtOnce is how many of them are appended to at a time.
	requeuedAtOnce = 64
)

// Orphaned puts the runs that a dead process owned back into the queue. It reads them from the read
// model, once that has all that the process can have appended.
func (s successor) Orphaned(ctx context.Context, process string) error {
	end, err := s.logEnd(ctx)
	if err != nil {
		return err
	}
	index, after, requeued := clients.Index{Client: s.deps.EventLog}, clients.OwnedRun{}, 0
	for {
		runs, _, err := index.Owned(ctx, process, after, ownedPage, end)
		if err != nil {
			return err
		}
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(requeuedAtOnce)
		for _, r := range runs {
			g.Go(func() error {
				if err := s.executor.Requeue(gctx, r.Run); err != nil {
					return fmt.Errorf("requeue run %s: %w", r.Run.RunID, err)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		requeued += len(runs)
		if len(runs) < ownedPage {
			if requeued > 0 {
				s.deps.Logger.Info("runs of a dead dispatcher put back into the queue", "process", process, "runs", requeued)
			}
			return nil
		}
		after = runs[len(runs)-1]
	}
}

// logEnd is the position of the log's last frame; 0 for a log that does not say.
func (s *Service) logEnd(ctx context.Context) (uint64, error) {
	f, ok := s.deps.Log.(interface {
		End(ctx context.Context) (uint64, error)
	})
	if !ok {
		return 0, nil
	}
	return f.End(ctx)
}

// cutWithin is how long runs may take to be released after the time for their effects is over.
const cutWithin = 3 * time.Second

// Quiesce takes no further runs and begins no further effects; calls are still served. Drain ends
// what is under way.
func (s *Service) Quiesce() {
	s.leases.Drain()
	s.executor.Drain()
	if s.scheduler != nil {
		s.scheduler.Drain()
	}
	s.pool.Drain()
}

// Drain lets effects that are under way end until ctx does, records their results, and releases
// what is left, so that other dispatchers continue without waiting for this one's lease.
func (s *Service) Drain(ctx context.Context) {
	s.Quiesce()
	select {
	case <-s.executing:
	default: // it has executed nothing yet
		return
	}
	idle := s.pool.Drain()
	if n := s.executor.Active(); n > 0 {
		s.deps.Logger.Info("draining: waiting for the calls of runs", "runs", n)
	}
	select {
	case <-idle:
	case <-ctx.Done():
		s.deps.Logger.Warn("drain timeout: releasing runs whose effects are still under way", "runs", s.executor.Active())
		s.executor.Cut()
		select {
		case <-idle:
		case <-time.After(cutWithin):
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutWithin)
	defer cancel()
	if err := s.leases.Release(ctx); err != nil && !errors.Is(err, runlog.ErrUnavailable) {
		s.deps.Logger.Warn("dispatcher lease not released; it expires", "error", err)
	}
}
