package quarantine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

// damaged is the cause in most tests.
var damaged = quarantine.Cause{Reason: quarantine.ReasonDamaged, Tries: 1}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queue is the queue and the log of the runs.
type queue struct {
	mu      sync.Mutex // guards what follows
	damaged map[string]bool
	looks   []time.Duration
	began   time.Time
	put     []string
	ended   bool  // every run has
	fails   error // what becomes of a damaged run; nil: frame.ErrDamaged
	// then is done after a run was put back; nil: nothing.
	then func(r subject.Run)
}

func (q *queue) Readmit(_ context.Context, r subject.Run) (back bool, err error) {
	q.mu.Lock()
	q.looks = append(q.looks, time.Since(q.began))
	if q.damaged[r.RunID] {
		q.mu.Unlock()
		return false, fmt.Errorf("%w: %s", cmp.Or(q.fails, frame.ErrDamaged), r.RunID)
	}
	q.put = append(q.put, r.RunID)
	then, ended := q.then, q.ended
	q.mu.Unlock()
	if then != nil {
		then(r)
	}
	return !ended, nil
}

func (q *queue) back() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]string{}, q.put...)
}

func (q *queue) mend(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.damaged[id] = false
}

// pass advances the fake clock of a synctest bubble.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in a bubble

func theRun(id string) subject.Run {
	return subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: id}
}

// begin starts a dispatcher's list; it ends with the test, or when end is called.
func begin(t *testing.T, store kv.Store, q *queue) (l *quarantine.List, end func()) {
	t.Helper()
	return beginWith(t, store, q, slog.DiscardHandler)
}

func beginWith(t *testing.T, store kv.Store, q *queue, log slog.Handler) (l *quarantine.List, end func()) {
	t.Helper()
	l = quarantine.New(quarantine.DefaultConfig(), store, time.Now, slog.New(log))
	l.Bind(q)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return l, end
}

func newQueue(damaged ...string) *queue {
	q := &queue{damaged: map[string]bool{}, began: time.Now()}
	for _, id := range damaged {
		q.damaged[id] = true
	}
	return q
}

func left(t *testing.T, s kv.Store) int {
	t.Helper()
	all, err := kv.List(t.Context(), s, "run.")
	require.NoError(t, err)
	return len(all)
}

func TestList_ChecksADamagedRunWithBackoffAndRequeuesItWhenWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(), newQueue("run_1")
		l, end := begin(t, store, q)
		defer end()
		require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
		pass(4 * time.Hour)
		require.Empty(t, q.back())
		require.GreaterOrEqual(t, q.looks[0], time.Minute, "no tight loop")
		for i := 1; i < len(q.looks); i++ {
			gap := q.looks[i] - q.looks[i-1]
			require.GreaterOrEqual(t, gap, time.Minute)
			require.LessOrEqual(t, gap, 15*time.Minute, "an operator waits no longer")
		}
		require.Less(t, len(q.looks), 30, "next to nothing in four hours")

		q.mend("run_1")
		pass(15 * time.Minute)
		require.Equal(t, []string{"run_1"}, q.back())
		pass(4 * time.Hour)
		require.Equal(t, []string{"run_1"}, q.back(), "once")
		require.Zero(t, left(t, store))
	})
}

func TestList_OfSeveralDispatchersOnePutsARunBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(), newQueue()
		first, end := begin(t, store, q)
		defer end()
		_, endOther := begin(t, store, q)
		defer endOther()
		for i := range 20 {
			require.NoError(t, first.Add(t.Context(), theRun(fmt.Sprint("run_", i)), damaged))
		}
		pass(time.Hour)
		require.Len(t, q.back(), 20)
		require.Zero(t, left(t, store))
	})
}

// Another dispatcher finds the record after the one that wrote or checked it died.
func TestList_ARunOutlivesTheDispatcherThatFoundIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(), newQueue("run_1")
		l, end := begin(t, store, q)
		require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
		pass(10 * time.Minute)
		end()
		q.mend("run_1")
		_, end = begin(t, store, q)
		defer end()
		pass(15 * time.Minute)
		require.Equal(t, []string{"run_1"}, q.back())
	})
}

// faulty fails the n-th write, as if the process had died before it.
type faulty struct {
	*memory.Store
	n int
}

var errDied = errors.New("died")

func (f *faulty) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if f.n--; f.n == 0 {
		return 0, errDied
	}
	return f.Store.Update(ctx, key, value, revision)
}

func TestList_ACrashWhileARunIsPutBackDoesNotLoseIt(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3} { // before it is looked at, and after it was put back
		synctest.Test(t, func(t *testing.T) {
			store, q := &faulty{memory.New(), n}, newQueue()
			l, end := begin(t, store, q)
			defer end()
			require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
			pass(time.Hour)
			require.Len(t, q.back(), n-1, "once more than it had to be, at most")
			require.Zero(t, left(t, store))
		})
	}
}

// Servers with and without the damage may lead in turn: a dispatcher may find the run damaged again
// before the check that enqueued it has ended.
func TestList_ARunThatIsDamagedAgainStaysWithAGrowingDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(), newQueue()
		l, end := begin(t, store, q)
		defer end()
		q.then = func(r subject.Run) { require.NoError(t, l.Add(t.Context(), r, damaged)) }
		require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
		pass(4 * time.Hour)
		n := len(q.back())
		require.Greater(t, n, 10)
		require.Less(t, n, 30, "each adds a frame to its log")
		require.Equal(t, 1, left(t, store))

		q.mu.Lock()
		q.then = nil
		q.mu.Unlock()
		pass(time.Hour)
		require.Len(t, q.back(), n+1)
		require.Zero(t, left(t, store))
	})
}

// The process log does not say that a run was enqueued if it was not.
func TestList_LogsWhetherARunEndedOrWasRequeued(t *testing.T) {
	t.Parallel()
	for ended, want := range map[bool]string{
		false: "run put back into the queue",
		true:  "run left quarantine: it has ended",
	} {
		synctest.Test(t, func(t *testing.T) {
			store, q, said := memory.New(), newQueue(), &bytes.Buffer{}
			q.ended = ended
			l := quarantine.New(quarantine.DefaultConfig(), store, time.Now, slog.New(slog.NewTextHandler(said, nil)))
			l.Bind(q)
			require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			require.ErrorIs(t, l.Run(ctx), context.DeadlineExceeded)
			require.Equal(t, 1, strings.Count(said.String(), "\n"), "%s", said)
			require.Contains(t, said.String(), want)
			require.Zero(t, left(t, store))
		})
	}
}

func TestAdd_FailsWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	l := quarantine.New(quarantine.DefaultConfig(), &faulty{memory.New(), 1}, time.Now, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, l.Add(t.Context(), theRun("run_1"), damaged), errDied)
}

// A missing or damaged log was reported when the run was quarantined, and is not reported again by
// each check. Other failures of a check are.
func TestList_LogsADamagedRunOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err    error
		logged bool
	}{{frame.ErrDamaged, false}, {runlog.ErrNotFound, false}, {runlog.ErrUnavailable, true}} {
		synctest.Test(t, func(t *testing.T) {
			store, q := memory.New(), newQueue("run_1")
			q.fails = tc.err
			var said bytes.Buffer
			l, end := beginWith(t, store, q, slog.NewTextHandler(&said, nil))
			require.NoError(t, l.Add(t.Context(), theRun("run_1"), damaged))
			pass(time.Hour)
			end()
			require.NotEmpty(t, q.looks)
			require.Equal(t, 1, left(t, store), "it is looked at again")
			require.Equal(t, tc.logged, said.Len() > 0, "%v: %s", tc.err, said.String())
		})
	}
}
