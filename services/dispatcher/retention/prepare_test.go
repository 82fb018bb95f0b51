package retention_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// archived records which runs were archived.
type archived struct {
	mu     sync.Mutex
	runs   []string
	fail   func(run subject.Run) error
	active int
	most   int
}

func (a *archived) prepare(_ context.Context, run subject.Run) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		if err := a.fail(run); err != nil {
			return err
		}
	}
	a.runs = append(a.runs, run.RunID)
	return nil
}

// addDue adds runs that are due.
func addDue(x *table, workflow string, n int) (ids []string) {
	for i := range n {
		id := workflow + wire.FormatTime(start.Add(time.Duration(i)*time.Second))
		x.add("acme", workflow, id, 40)
		ids = append(ids, id)
	}
	return ids
}

var (
	errAway  = fmt.Errorf("%w: the bucket is away", retention.ErrAway)
	errLarge = fmt.Errorf("%w: it is too large", retention.ErrArchive)
)

// Runs that can never be archived are kept, and all others of their workflow are erased: in each sweep,
// also when the kept ones fill pages.
func TestSweep_PassesRunsThatCannotBeArchived(t *testing.T) {
	t.Parallel()
	x, a := &table{}, &archived{}
	x.prepare = a.prepare
	ids := addDue(x, "a", 300)
	bad := map[string]bool{}
	for _, id := range ids[:230] {
		bad[id] = true
	}
	a.fail = func(run subject.Run) error {
		if bad[run.RunID] {
			return errLarge
		}
		return nil
	}
	s := sweeper(x, 30, nil, nil)
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Equal(t, ids[230:], x.expired)
	require.Equal(t, int64(230), s.Stats().Unarchived)
	require.Contains(t, x.logged.String(), "kept=230")

	x.expired = nil
	x.add("acme", "a", "later", 35)
	_, err = s.Sweep(t.Context())
	require.NoError(t, err)
	require.Contains(t, x.expired, "later")
}

// Only archived runs are erased, and those that cannot be archived do not keep the others.
func TestSweep_ErasesArchivedRunsOnly(t *testing.T) {
	t.Parallel()
	x, a := &table{}, &archived{}
	x.prepare = a.prepare
	ids := addDue(x, "a", 250)
	others := addDue(x, "b", 3)
	bad := map[string]bool{ids[0]: true, ids[120]: true, ids[249]: true}
	a.fail = func(run subject.Run) error {
		switch {
		case bad[run.RunID]:
			return errAway
		case run.RunID == ids[7]:
			return fault.New(fault.Conflict, "held")
		case run.RunID == ids[8]:
			return fault.NoRun()
		}
		return nil
	}
	s := sweeper(x, 30, nil, nil)
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	want := slices.DeleteFunc(slices.Concat(ids, others), func(id string) bool { return bad[id] || id == ids[7] || id == ids[8] })
	require.Equal(t, want, x.expired)
	slices.Sort(a.runs)
	slices.Sort(want)
	require.Equal(t, want, a.runs)
	require.Equal(t, int64(3), s.Stats().Unarchived)
	require.Equal(t, 1, strings.Count(x.logged.String(), "they are not archived"), "one line for the workflow: %s", x.logged.String())
	require.Contains(t, x.logged.String(), "the bucket is away")
}

// While the log is away, no run can be archived, and the sweep ends.
func TestSweep_EndsWithoutTheLog(t *testing.T) {
	t.Parallel()
	x, a := &table{}, &archived{}
	x.prepare = a.prepare
	gone := errors.New("the log is away")
	a.fail = func(subject.Run) error {
		x.away = gone
		return fmt.Errorf("%w: %w", retention.ErrArchive, gone)
	}
	addDue(x, "a", 250)
	addDue(x, "b", 3)
	_, err := sweeper(x, 30, nil, nil).Sweep(t.Context())
	require.ErrorIs(t, err, gone)
	require.Empty(t, x.expired)
	require.Equal(t, 1, x.pages)
}

// While the archive is away, nothing is erased, and few runs are tried.
func TestSweep_KeepsAllWithoutTheArchive(t *testing.T) {
	t.Parallel()
	x, a := &table{}, &archived{}
	x.prepare = a.prepare
	tries := 0
	a.fail = func(subject.Run) error { tries++; return errAway }
	addDue(x, "a", 250)
	addDue(x, "b", 3)
	s := sweeper(x, 30, nil, nil)
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, x.expired)
	require.LessOrEqual(t, tries, 16+8+3)
	require.Equal(t, 2, x.pages, "the rest of the workflow is left to the next sweep")

	a.fail = nil
	_, err = s.Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, x.expired, 253)
	require.Len(t, a.runs, 253)
}

// Several runs are archived at the same time, but not all.
func TestSweep_ArchivesSeveralRunsAtATime(t *testing.T) {
	t.Parallel()
	x, a := &table{}, &archived{}
	full := make(chan struct{})
	x.prepare = func(ctx context.Context, run subject.Run) error {
		a.mu.Lock()
		a.active++
		a.most = max(a.most, a.active)
		if a.active == 8 {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		a.mu.Unlock()
		<-full // all eight have arrived
		a.mu.Lock()
		a.active--
		a.mu.Unlock()
		return a.prepare(ctx, run)
	}
	addDue(x, "a", 40)
	_, err := sweeper(x, 30, nil, nil).Sweep(t.Context())
	require.NoError(t, err)
	require.Len(t, x.expired, 40)
	require.Equal(t, 8, a.most)
}

// A process that stops, or no longer sweeps, erases nothing that it has not archived.
func TestSweep_StopsBetweenArchiveAndErasure(t *testing.T) {
	t.Parallel()
	x, a := &table{}, &archived{}
	x.prepare = a.prepare
	addDue(x, "a", 20)
	s := sweeper(x, 30, nil, nil)
	a.fail = func(subject.Run) error { s.Own(false); return nil }
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
	require.Empty(t, x.expired)
	require.NotContains(t, x.logged.String(), "not archived")

	ctx, cancel := context.WithCancel(t.Context())
	s.Own(true)
	a.fail = func(subject.Run) error { cancel(); return nil }
	_, err = s.Sweep(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, x.expired)
}

// The first sweep of a short retention, without any run, is followed by the next one soon.
func TestSweep_FollowsTheRetentionOfTheInstallation(t *testing.T) {
	t.Parallel()
	x := &table{}
	clock := retention.NewClock(kvmemory.New(), func() time.Time { return start }, func(context.Context) (uint64, time.Time, error) { return 1, start, nil })
	for keep, want := range map[time.Duration]time.Duration{
		0: time.Minute, 2 * time.Second: time.Second, time.Minute: 6 * time.Second, oneDay: time.Minute,
	} {
		p := retention.Policies{Default: keep}
		s := retention.NewSweeper(retention.Config{Rate: 1}, p, clock, x, x, func() bool { return true }, quiet)
		s.Own(true)
		pause, err := s.Sweep(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, pause, "%s", keep)
	}
}
