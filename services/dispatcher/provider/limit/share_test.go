package limit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// installation is a number of dispatchers that call one vendor as fast as they may.
type installation struct {
	t   *testing.T
	doc string
	// takes and tokens are those of each call.
	takes  time.Duration
	tokens int
	peers  []*peer

	mu     sync.Mutex // guards what follows
	joined time.Time  // when the last dispatcher joined
	starts []time.Time
	// flying are the calls in flight, most their largest number, but for the time in which the
	// calls from before the last join can go on.
	flying, most int
}

type peer struct {
	*limit.Limiter

	stop  context.CancelFunc
	calls int
}

// join starts a dispatcher with ten callers.
func (in *installation) join() *peer {
	ctx, stop := context.WithCancel(in.t.Context())
	p := &peer{Limiter: limiter(in.t, in.doc, nil), stop: stop}
	p.SetShare(limit.Share{})
	in.peers = append(in.peers, p)
	in.mu.Lock()
	in.joined = time.Now()
	in.mu.Unlock()
	for range 10 {
		go in.call(ctx, p)
	}
	synctest.Wait() // its calls wait until the others are known
	in.divide()
	return p
}

func (in *installation) divide() {
	for i, p := range in.peers {
		p.SetShare(limit.Share{Rank: i, Of: len(in.peers)})
	}
}

// leave ends a dispatcher; the others know it later.
func (in *installation) leave(p *peer) {
	p.stop()
	time.Sleep(10 * time.Second) //nolint:forbidigo // in a bubble
	in.peers = slices.DeleteFunc(in.peers, func(o *peer) bool { return o == p })
	in.divide()
}

// call calls until its dispatcher ends.
func (in *installation) call(ctx context.Context, p *peer) {
	for ctx.Err() == nil {
		s, err := p.Acquire(ctx, limit.Call{Provider: "p", Tenant: "a", Tokens: in.tokens})
		if err != nil {
			return
		}
		in.mu.Lock()
		p.calls++
		in.starts = append(in.starts, time.Now())
		if in.flying++; time.Since(in.joined) > in.takes {
			in.most = max(in.most, in.flying)
		}
		in.mu.Unlock()
		time.Sleep(in.takes) //nolint:forbidigo // in a bubble
		in.mu.Lock()
		in.flying--
		in.mu.Unlock()
		s.Release(limit.Outcome{Tokens: in.tokens})
	}
}

// exceeds finds a period in which more calls began than burst and what a minute's rate adds.
func (in *installation) exceeds(burst, perMinute float64) string {
	for i, from := range in.starts {
		for j := i; j < len(in.starts); j++ {
			allowed := burst + in.starts[j].Sub(from).Minutes()*perMinute
			if n := j - i + 1; float64(n) > allowed+0.01 {
				return fmt.Sprintf("%d calls in %s, allowed %.2f", n, in.starts[j].Sub(from), allowed)
			}
		}
	}
	return ""
}

// history lets dispatchers join and leave for some minutes.
func (in *installation) history() {
	a := in.join()
	pass(2 * time.Minute)
	b, c := in.join(), in.join()
	pass(2 * time.Minute)
	in.leave(a)
	pass(2 * time.Minute)
	for range 5 { // a dispatcher that starts again and again
		in.leave(b)
		b = in.join()
	}
	in.leave(c)
	pass(2 * time.Minute)
	b.stop()
	pass(2 * in.takes)
}

func TestShare_TheSumOfAllDispatchersIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		doc              string
		tokens           int
		burst, perMinute float64
	}{
		"requests":          {`{"requestsPerMinute":60}`, 0, 10, 60},
		"uneven":            {`{"requestsPerMinute":35}`, 0, 35.0 / 6, 35},
		"tokens":            {`{"tokensPerMinute":6000}`, 100, 60, 60},
		"requests of both":  {`{"requestsPerMinute":60,"tokensPerMinute":600000}`, 100, 10, 60},
		"tokens of both":    {`{"requestsPerMinute":600,"tokensPerMinute":6000}`, 100, 60, 60},
		"one call each":     {`{"requestsPerMinute":6}`, 0, 3, 6}, // a burst of one for each dispatcher
		"large calls, each": {`{"tokensPerMinute":6000}`, 3000, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in := &installation{t: t, doc: tc.doc, tokens: tc.tokens, takes: time.Second}
				in.history()
				require.Empty(t, in.exceeds(tc.burst, tc.perMinute))
				minutes := in.starts[len(in.starts)-1].Sub(in.starts[0]).Minutes()
				require.Greater(t, float64(len(in.starts)), minutes*tc.perMinute*0.6, "it is used")
			})
		})
	}
}

func TestShare_TheSumOfCallsInFlightIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	for name, max := range map[string]int{"as many as dispatchers": 3, "remainder": 7, "many": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in := &installation{t: t, doc: fmt.Sprintf(`{"maxConcurrent":%d}`, max), takes: time.Second}
				in.history()
				require.LessOrEqual(t, in.most, max)
				require.GreaterOrEqual(t, in.most, min(max, 10))
				require.Zero(t, in.flying)
			})
		})
	}
}

// A limit that is smaller than the number of dispatchers keeps none of them from calling.
func TestShare_ASmallLimitStarvesNoDispatcher(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		doc    string
		tokens int
		// most is the number of calls of all in half an hour.
		most int
	}{
		"concurrent": {`{"maxConcurrent":1}`, 0, 3 * 30 * 60},
		"requests":   {`{"requestsPerMinute":1}`, 0, 3 + 30},
		"tokens":     {`{"tokensPerMinute":100}`, 100, 3 + 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in := &installation{t: t, doc: tc.doc, tokens: tc.tokens, takes: time.Second}
				for range 3 {
					in.join()
				}
				time.Sleep(30 * time.Minute) //nolint:forbidigo // in a bubble
				for _, p := range in.peers {
					p.stop()
				}
				pass(2 * time.Second)
				for _, p := range in.peers {
					require.GreaterOrEqual(t, p.calls, tc.most/3-3)
				}
				require.LessOrEqual(t, len(in.starts), tc.most+3)
			})
		})
	}
}

// A larger share is used without a call that ends before.
func TestShare_WakesCallsThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, tr := limiter(t, `{"maxConcurrent":2,"requestsPerMinute":6000}`, nil), &trace{begin: time.Now()}
		l.SetShare(limit.Share{})
		for i := range 3 {
			tr.call(t.Context(), l, limit.Call{Tenant: "a"}, time.Minute, -1, fmt.Sprint(i))
		}
		require.Empty(t, tr.list(), "the share is not known")
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		l.SetShare(limit.Share{Rank: 1, Of: 2})
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		require.Equal(t, []string{"0 1s"}, tr.list())
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		l.SetShare(limit.Alone)
		require.Equal(t, []string{"0 1s", "1 3s"}, tr.list())
		time.Sleep(3 * time.Minute) //nolint:forbidigo // in a bubble
		require.Equal(t, []string{"0 1s", "1 3s", "2 1m1s"}, tr.list())
	})
}

func TestAll_NamesProvidersWithFewerCallsThanDispatchers(t *testing.T) {
	t.Parallel()
	all, err := limit.Parse([]byte(`{"providers":{"p":{"maxConcurrent":2},"q":{"maxConcurrent":9},"r":{"requestsPerMinute":1},"*":{"maxConcurrent":1}}}`), limit.Host{Providers: &settings.Names{Known: []string{"p", "q", "r"}}})
	require.NoError(t, err)
	require.Empty(t, all.Exceeded(1))
	require.Equal(t, []string{"*", "p"}, all.Exceeded(3))
	require.Empty(t, (*limit.All)(nil).Exceeded(3))
}
