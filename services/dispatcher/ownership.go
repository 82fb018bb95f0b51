package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
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

// peerTimeout limits a request to another dispatcher.
const peerTimeout = time.Second

// answers are the responses of a dispatcher about a run.
var answers = map[engine.PeerAnswer]string{engine.Executes: "executes", engine.Covers: "covers"}

// peerClient implements engine.Peers. The request is a run id and a position, the response one of
// answers; any other means engine.NotExecuting.
type peerClient struct{ Peers }

func (p peerClient) NotifyAppended(ctx context.Context, process, runID string, pos uint64) (engine.PeerAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	answer, err := p.Ask(ctx, process, fmt.Append(nil, runID, " ", pos))
	for known, text := range answers {
		if string(answer) == text {
			return known, err
		}
	}
	return engine.NotExecuting, err
}

// peers returns a nil interface without peers.
func (s *Service) peers() engine.Peers {
	if s.deps.Peers == nil {
		return nil
	}
	return peerClient{s.deps.Peers}
}

// answerPeers serves the requests of other dispatchers.
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
		return []byte(answers[s.executor.NotifyAppended(runID, pos)])
	})
}

// leaseRetry is the pause before writing the lease again.
const leaseRetry = 500 * time.Millisecond

// openLease writes this process's lease. No run is executed before.
func (s *Service) openLease(ctx context.Context) error {
	if err := s.answerPeers(); err != nil {
		return err
	}
	for range retry.Every(leaseRetry).Tries(ctx) {
		err := s.leases.Open(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.deps.Logger.Warn("dispatcher lease not written; trying again", "error", err)
	}
	return ctx.Err()
}

// successor handles lost and ended leases; see lease.Handler.
type successor struct{ *Service }

// Lost stops this process's runs: another dispatcher took them over.
func (s successor) Lost(string) {
	s.executor.LeaseLost()
	if err := s.answerPeers(); err != nil {
		s.deps.Logger.Warn("requests of other dispatchers are not answered", "error", err)
	}
}

const (
	// ownedPage is the number of a dead process's runs read at a time.
	ownedPage = 500
	// requeueParallelism limits the concurrent appends to them.
	requeueParallelism = 64
)

// Orphaned puts a dead process's runs back into the queue. It reads them from the read model after
// that has everything the process can have appended.
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
		g.SetLimit(requeueParallelism)
		for _, r := range runs {
			g.Go(func() error {
				if err := s.executor.Requeue(gctx, r.Run, frame.Ownership{
					Owner: process,
					Epoch: r.Epoch,
					Since: r.Since,
				}); err != nil {
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

// logEnd returns the position of the log's last frame; 0 if the log does not provide it.
func (s *Service) logEnd(ctx context.Context) (uint64, error) {
	f, ok := s.deps.Log.(interface {
		End(ctx context.Context) (uint64, error)
	})
	if !ok {
		return 0, nil
	}
	return f.End(ctx)
}

// releaseTimeout is the time to release runs after the drain timeout.
const releaseTimeout = 3 * time.Second

// Quiesce accepts no further runs and starts no further effects. Calls are still served. Drain ends
// the current ones.
func (s *Service) Quiesce() {
	s.leases.Drain()
	s.executor.Drain()
	if s.scheduler != nil {
		s.scheduler.Drain()
	}
	s.pool.Drain()
}

// Drain waits for current effects until ctx ends, records their results, and releases the other
// runs. Other dispatchers then continue them without waiting for this one's lease.
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
		case <-time.After(releaseTimeout):
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := s.leases.Release(ctx); err != nil && !errors.Is(err, runlog.ErrUnavailable) {
		s.deps.Logger.Warn("dispatcher lease not released; it expires", "error", err)
	}
}
