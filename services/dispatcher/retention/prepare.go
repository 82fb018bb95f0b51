package retention

import (
	"context"
	"errors"
	"sync"

	"waybill.dev/waybill/protocol/subject"
)

// ErrArchive means that the archive of the host did not take a run, so the run is kept.
var ErrArchive = errors.New("the run is not archived")

const (
	// preparing is how many runs are archived at the same time.
	preparing = 8
	// giveUp is after how many failures in a row the archive counts as away. The other runs of the
	// workflow are then left to the next sweep. A single run that cannot be archived stops no other.
	giveUp = 2 * preparing
)

// run names a run of the workflow.
func (f Flow) run(r End) subject.Run {
	return subject.Run{Tenant: f.Tenant, WorkflowID: f.WorkflowID, RunID: r.RunID}
}

// prepare prepares runs for their erasure, several at the same time, and returns the error of each.
func (s *Sweeper) prepare(ctx context.Context, f Flow, runs []End) []error {
	errs := make([]error, len(runs))
	var (
		group  sync.WaitGroup
		mu     sync.Mutex // guards inARow
		inARow int
		slots  = make(chan struct{}, preparing)
	)
	away := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return inARow >= giveUp
	}
	for i, r := range runs {
		slots <- struct{}{}
		if away() || !s.owns() || ctx.Err() != nil {
			errs[i] = errors.Join(ErrArchive, ctx.Err())
			<-slots
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			err := s.eraser.Prepare(ctx, f.run(r))
			mu.Lock()
			defer mu.Unlock()
			inARow++
			if !errors.Is(err, ErrArchive) {
				inARow = 0
			}
			errs[i] = err
		})
	}
	group.Wait()
	return errs
}

// failures counts the runs of a workflow that the archive did not take.
type failures struct {
	count int
	last  error
}

func (f *failures) add(err error) { f.count, f.last = f.count+1, err }

// noteUnarchived records and logs the runs that are kept because they are not archived.
func (s *Sweeper) noteUnarchived(f Flow, n failures) {
	if n.count == 0 {
		return
	}
	st := s.Stats()
	st.Unarchived += int64(n.count)
	s.stats.Store(&st)
	s.log.Warn("runs whose retention is over are kept, because they are not archived; trying again",
		"tenant", f.Tenant, "workflow_id", f.WorkflowID, "runs", n.count, "error", n.last)
}
