package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// away is a log that is unreachable for a time.
type away struct {
	*memory.Log
	until func() time.Time
}

func (l away) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if time.Now().Before(l.until()) {
		return 0, runlog.ErrUnavailable
	}
	return l.Log.Append(ctx, f, after)
}

// A result is kept while the log is unreachable.
func TestExecute_HoldsAResultWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold  time.Duration
		calls int
	}{"held": {time.Minute, 1}, "handed back": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				r.hold = c.hold
				r.log.SetRetryDelay(time.Second)
				var until time.Time
				calls := 0
				r.exec = r.executorOn(away{r.log, func() time.Time { return until }}, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")),
					models(func(context.Context, model.Task, model.Journal) model.Result {
						if calls++; calls == 1 {
							until = time.Now().Add(20 * time.Second)
						}
						return model.Result{}
					}))
				r.create(t)
				for ended := false; !ended; {
					r.next(t)
					st, _ := r.state(t)
					ended = st.Status.Terminal()
				}
				require.Equal(t, c.calls, calls)
			})
		})
	}
}

// The answer of a model is kept while no acceptor can be reached, or none answers.
func TestExecute_HoldsAnAnswerWhileTheAcceptorIsAway(t *testing.T) {
	t.Parallel()
	stopped := fault.New(fault.ServiceUnavailable, "a service of this host cannot be reached; try again")
	for name, failure := range map[string]error{"unreachable": stopped, "too slow": context.DeadlineExceeded, "stopping": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				r.hold = time.Minute
				r.log.SetRetryDelay(time.Second)
				var until time.Time
				r.acceptor = acceptor(func(ctx context.Context, run subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
					if time.Now().Before(until) {
						return engine.Accepted{}, fmt.Errorf("acceptor: %w", failure)
					}
					return records(ctx, r.log, run, head, req.Preceding)
				})
				asked, answer := 0, calls(ofCall(wire.EventProviderUsage)...)
				r.exec = r.executorOn(r.log, define(t, nodeJSON("n", "core.ai.callPrompt", "{}")),
					models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
						if asked++; asked == 1 {
							until = time.Now().Add(20 * time.Second)
						}
						return answer(ctx, task, j)
					}))
				r.create(t)
				r.next(t)
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status)
				require.Equal(t, 1, asked)
			})
		})
	}
}

// noted is a delivery that records how it was ended.
type noted struct {
	runlog.Delivery
	mu    sync.Mutex
	ended string
}

func (n *noted) end(how string, err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = how
	return err
}

func (n *noted) Ack() error    { return n.end("ack", n.Delivery.Ack()) }
func (n *noted) Retry() error  { return n.end("retry", n.Delivery.Retry()) }
func (n *noted) Return() error { return n.end("return", n.Delivery.Return()) }

// handed is a delivery for a process id.
type handed struct {
	*noted
	process string
}

func (h handed) Process() string { return h.process }

// A run delivered under a lost lease starts no effects, although the process has a new lease: the
// run's permits are no longer held.
func TestExecute_BeginsNothingUnderALeaseThatWasLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"held": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), nil)
			r.alive = true
			calls := 0
			r.exec = r.executor(r.defs, models(func(context.Context, model.Task, model.Journal) model.Result {
				calls++
				return model.Result{}
			}))
			r.create(t)
			d, err := r.log.Next(t.Context())
			require.NoError(t, err)
			h := handed{&noted{Delivery: d}, r.exec.Process()}
			if lost {
				h.process = "EARLIER"
			}
			r.exec.Execute(t.Context(), h)
			if lost {
				require.Zero(t, calls)
				require.Empty(t, h.ended, "another dispatcher may have it")
			} else {
				require.Equal(t, 1, calls)
				require.Equal(t, "ack", h.ended)
			}
		})
	}
}
