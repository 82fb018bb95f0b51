package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// desk is a carrier whose answers the test gives.
type desk struct {
	alone   chan sent
	batches chan sent
}

type sent struct {
	runs   []string
	answer chan answer
}

type answer struct {
	pos uint64
	err error
}

func newDesk() *desk { return &desk{alone: make(chan sent, 1000), batches: make(chan sent, 1000)} }

func (d *desk) one(ctx context.Context, e entry) (uint64, error) {
	s := sent{runs: []string{e.run}, answer: make(chan answer, 1)}
	d.alone <- s
	select {
	case a := <-s.answer:
		return a.pos, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (d *desk) many(batch []*ticket) (uint64, error) {
	s := sent{answer: make(chan answer, 1)}
	for _, t := range batch {
		s.runs = append(s.runs, t.run)
	}
	d.batches <- s
	a := <-s.answer
	return a.pos, a.err
}

// minBatch is how many go as one sooner than alone, at the pace and cost of newCrowd.
const minBatch = 8

// crowd are appends that were begun, by their run.
type crowd struct {
	g       *group
	answers map[string]chan answer
	cancel  map[string]context.CancelFunc
}

func newCrowd(d *desk) *crowd {
	g := &group{to: d, together: true, pace: pace{each: time.Millisecond}, cost: (minBatch - 1) * time.Millisecond}
	return &crowd{g: g, answers: map[string]chan answer{}, cancel: map[string]context.CancelFunc{}}
}

// begin begins one append, and returns when it has gone as far as it can.
func (c *crowd) begin(name, run string) {
	ctx, cancel := context.WithCancel(context.Background())
	ch := make(chan answer, 1)
	c.answers[name], c.cancel[name] = ch, cancel
	go func() {
		pos, err := c.g.publish(ctx, entry{msg: &nats.Msg{}, run: run})
		ch <- answer{pos, err}
	}()
	synctest.Wait()
}

func (c *crowd) beginAll(from, to int) (runs []string) {
	for i := from; i < to; i++ {
		run := fmt.Sprint("run-", i)
		c.begin(run, run)
		runs = append(runs, run)
	}
	return runs
}

// idle says that nothing is kept of what has ended.
func (c *crowd) idle(t *testing.T) {
	t.Helper()
	synctest.Wait()
	require.Zero(t, c.g.alone)
	require.False(t, c.g.batch)
	require.Empty(t, c.g.waiting)
}

// clear answers all that goes alone, until nothing does.
func (d *desk) clear() {
	for {
		synctest.Wait()
		select {
		case s := <-d.alone:
			s.answer <- answer{pos: 1}
		default:
			return
		}
	}
}

func TestGroup_FewGoAloneAndThoseThatWaitForThemGoAsOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := newCrowd(d)
		c.beginAll(0, maxAlone)
		require.Len(t, d.alone, maxAlone)
		waiting := c.beginAll(maxAlone, maxAlone+minBatch-1)
		require.Len(t, d.alone, maxAlone, "the others wait")
		require.Empty(t, d.batches)
		waiting = append(waiting, c.beginAll(100, 101)...)
		require.Len(t, d.batches, 1)
		late := c.beginAll(200, 200+2*minBatch)
		require.Len(t, d.batches, 1, "one batch at a time")

		b := <-d.batches
		require.Equal(t, waiting, b.runs, "in the order they came")
		b.answer <- answer{pos: 50}
		synctest.Wait()
		for i, run := range waiting {
			require.Equal(t, answer{pos: uint64(50 - len(waiting) + 1 + i)}, <-c.answers[run])
		}
		b = <-d.batches
		require.Equal(t, late, b.runs, "those that came meanwhile are the next")
		b.answer <- answer{pos: 90}
		d.clear()
		c.idle(t)
	})
}

// Within a batch the server does not hold the second append of a run against the first:
// both would be stored.
func TestGroup_ABatchHoldsOneAppendOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := newCrowd(d)
		c.beginAll(0, maxAlone)
		c.begin("first", "raced")
		c.begin("second", "raced")
		c.beginAll(10, 10+minBatch-2)
		require.Empty(t, d.batches, "the second does not count")
		c.beginAll(20, 21)
		b := <-d.batches
		require.Len(t, b.runs, minBatch)
		require.Equal(t, "raced", b.runs[0])
		require.NotContains(t, b.runs[1:], "raced")
		b.answer <- answer{pos: 90}
		require.NoError(t, (<-c.answers["first"]).err)
		d.clear()
		require.Equal(t, answer{pos: 1}, <-c.answers["second"], "for itself, afterwards")
		c.idle(t)
	})
}

func TestGroup_OfARefusedBatchEachGoesAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := newCrowd(d)
		c.beginAll(0, maxAlone)
		waiting := c.beginAll(10, 10+minBatch)
		d.clear()
		(<-d.batches).answer <- answer{err: fmt.Errorf("%w: a conflict", errBatch)}
		d.clear()
		for _, run := range waiting {
			require.Equal(t, answer{pos: 1}, <-c.answers[run])
		}
		c.idle(t)
	})
}

// Whether a batch was stored that was not answered is not known: each is told so, and
// nobody sends it anew without having looked.
func TestGroup_AnUnansweredBatchIsToldToEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := newCrowd(d)
		c.beginAll(0, maxAlone)
		waiting := c.beginAll(10, 10+minBatch)
		d.clear()
		(<-d.batches).answer <- answer{err: nats.ErrTimeout}
		for _, run := range waiting {
			require.ErrorIs(t, (<-c.answers[run]).err, nats.ErrTimeout)
		}
		d.clear()
		c.idle(t)
	})
}

func TestGroup_ACallerWhoGoesLeavesTheOthersTheirPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := newCrowd(d)
		c.beginAll(0, maxAlone)
		waiting := c.beginAll(10, 13)
		c.cancel[waiting[1]]()
		require.ErrorIs(t, (<-c.answers[waiting[1]]).err, context.Canceled)
		d.clear()
		require.Equal(t, answer{pos: 1}, <-c.answers[waiting[0]])
		require.Equal(t, answer{pos: 1}, <-c.answers[waiting[2]])
		c.idle(t)
	})
}

// Where nothing is synced each is quick for itself, and a batch would be slower.
func TestGroup_GoesTogetherOnlyWhereThatIsSooner(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		each    time.Duration // of those that go alone
		batches bool
	}{
		"a server that syncs":    {400 * time.Microsecond, true},
		"one that does not":      {30 * time.Microsecond, false},
		"one that is very slow":  {20 * time.Millisecond, true},
		"one that takes no time": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &serial{turn: make(chan struct{}, 1), each: tt.each, batch: 5 * time.Millisecond}
				g := &group{to: d, together: true}
				var wg sync.WaitGroup
				for w := range 64 {
					wg.Go(func() {
						for range 50 {
							_, err := g.publish(t.Context(), entry{msg: &nats.Msg{}, run: fmt.Sprint(w)})
							require.NoError(t, err)
						}
					})
				}
				wg.Wait()
				require.Equal(t, tt.batches, d.batched > 0)
				if tt.batches {
					require.Greater(t, d.batched, 64*50/2, "most")
				}
			})
		})
	}
}

// serial is a server that does one thing after the other, and takes its time.
type serial struct {
	turn        chan struct{} // holds one: a mutex would stop the bubble's clock
	each, batch time.Duration
	batched     int
}

func (s *serial) work(d time.Duration, batched int) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.batched += batched
	<-time.After(d)
}

func (s *serial) one(context.Context, entry) (uint64, error) {
	s.work(s.each, 0)
	return 1, nil
}

func (s *serial) many(batch []*ticket) (uint64, error) {
	s.work(s.batch, len(batch))
	return uint64(len(batch)), nil
}

// Whatever happens to them, all appends end, and leave nothing behind.
func TestGroup_EveryAppendEnds(t *testing.T) {
	t.Parallel()
	g := &group{to: fickle{}, together: true, pace: pace{each: time.Second}}
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithCancel(context.Background())
				if rand.IntN(4) == 0 {
					go cancel()
				}
				_, _ = g.publish(ctx, entry{msg: &nats.Msg{}, run: fmt.Sprint(w, i%3)})
				cancel()
			}
		})
	}
	wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Zero(t, g.alone)
	require.Empty(t, g.waiting)
}

// fickle takes, refuses or fails.
type fickle struct{}

func (fickle) one(ctx context.Context, _ entry) (uint64, error) { return 1, ctx.Err() }

func (fickle) many(batch []*ticket) (uint64, error) {
	switch rand.IntN(3) {
	case 0:
		return 0, errBatch
	case 1:
		return 0, errors.New("lost")
	}
	return uint64(len(batch)), nil
}
