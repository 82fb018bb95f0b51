package retention

import (
	"context"
	"time"
)

// measureEvery is the time between two counts of all ended runs.
const measureEvery = 10 * time.Minute

// Totals counts the ended runs of the installation.
type Totals struct {
	Runs, NextDay int64
	// Older counts runs by Ages: those that ended more than so many days ago.
	Older []int64
	// LogBytes is the size of the run log.
	LogBytes uint64
}

// Bytes estimates the size of runs from the average of all ended ones.
func (t Totals) Bytes(runs int64) float64 {
	return float64(t.LogBytes) * float64(runs) / float64(max(t.Runs, 1))
}

// measure counts ended runs, if it is time. A workflow whose definition cannot be read is left out.
func (s *Sweeper) measure(ctx context.Context, now time.Time) {
	if time.Since(s.measured) < measureEvery {
		return
	}
	t, err := s.total(ctx, now)
	if err != nil {
		s.log.Warn("ended runs not counted", "error", err)
		return
	}
	s.measured = time.Now()
	s.totals.Store(t)
}

func (s *Sweeper) total(ctx context.Context, now time.Time) (*Totals, error) {
	t := &Totals{Older: make([]int64, len(Ages()))}
	for after := (Flow{}); ; {
		flows, err := s.index.Flows(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for _, f := range flows {
			r, err := reportOf(ctx, s.index, s.policies, f, now)
			if err != nil {
				continue
			}
			t.Runs += r.Runs
			t.NextDay += r.Due + r.NextDay
			for i, n := range r.Older {
				t.Older[i] += n
			}
		}
		if len(flows) < page {
			break
		}
		after = flows[len(flows)-1]
	}
	var err error
	t.LogBytes, _, err = s.clock.log(ctx)
	return t, err
}
