package retention

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"waybill.dev/waybill/protocol/subject"
)

var (
	// ErrArchive means that a run could not be archived, so it is kept. It says nothing about other runs.
	ErrArchive = errors.New("the run is not archived")
	// ErrAway is the ErrArchive of an archive that is unavailable, for all runs.
	ErrAway = fmt.Errorf("%w: the archive is unavailable", ErrArchive)
)

const (
	// preparing is how many runs are archived at the same time.
	preparing = 8
	// giveUp is after how many ErrAway in a row the other runs of the workflow are left to the next
	// sweep. Runs that cannot be archived stop no others, however many they are.
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
			errs[i] = errors.Join(ErrAway, ctx.Err())
			<-slots
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			err := s.eraser.Prepare(ctx, f.run(r))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrAway):
				inARow++
			case !errors.Is(err, ErrArchive):
				inARow = 0
			}
			errs[i] = err
		})
	}
	group.Wait()
	return errs
}

// failures counts the runs of a workflow that were not archived.
type failures struct {
	count int
	runID string
	last  error
}

func (f *failures) add(runID string, err error) { f.count, f.runID, f.last = f.count+1, runID, err }

// noteUnarchived records and logs the runs that are kept because they are not archived.
func (s *Sweeper) noteUnarchived(f Flow, n failures) {
	if n.count == 0 {
		return
	}
	st := s.Stats()
	st.Unarchived += int64(n.count)
	s.stats.Store(&st)
	s.log.Warn("runs whose retention is over are kept, because they are not archived; trying again",
		"tenant", f.Tenant, "workflow_id", f.WorkflowID, "runs", n.count, "run_id", n.runID, "error", n.last)
}
