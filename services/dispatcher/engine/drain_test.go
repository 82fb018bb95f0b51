package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
)

// twoCalls is a run of two consecutive calls, each of some seconds.
func twoCalls(t *testing.T, r *rig, seconds int) (calls *[]string, next func(who string)) {
	t.Helper()
	said := &[]string{}
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.ai.callPrompt", "{}"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`)
	return said, func(who string) {
		r.exec = r.executor(defs, models(func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
			*said = append(*said, who+" calls "+task.Input.NodeID)
			select {
			case <-time.After(time.Duration(seconds) * time.Second):
				return model.Result{}
			case <-ctx.Done():
				return model.Result{Interrupted: context.Cause(ctx)}
			}
		}))
	}
}

func TestDrain_RecordsWhatEndsAndReleasesTheRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut  bool
		want []string
	}{
		"the call ends":   {false, []string{"one calls a", "two calls b"}},
		"the call is cut": {true, []string{"one calls a", "two calls a", "two calls b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				r.alive = true // the draining process is alive: no other process may take its run over
				calls, process := twoCalls(t, r, 10)
				process("one")
				one := r.exec
				r.create(t)
				d, err := r.log.Next(t.Context())
				require.NoError(t, err)
				done := make(chan struct{})
				go func() { defer close(done); one.Execute(t.Context(), d) }()
				synctest.Wait()
				one.Drain()
				if c.cut {
					synctest.Wait()
					one.Cut()
				}
				began := time.Now()
				<-done
				require.Less(t, time.Since(began), 11*time.Second)
				_, frames := r.state(t)
				last := frames[len(frames)-1]
				require.Equal(t, subject.Wake, last.Kind, "it is in the queue")
				owner := frame.Ownership{}
				for _, f := range frames {
					owner = owner.After(f)
				}
				require.Empty(t, owner.Owner, "and has no owner")

				process("two")
				for st, _ := r.state(t); !st.Status.Terminal(); st, _ = r.state(t) {
					r.next(t)
				}
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status)
				require.Equal(t, c.want, *calls)
			})
		})
	}
}

func TestDrain_TakesNothingNew(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	calls, process := twoCalls(t, r, 0)
	process("one")
	r.create(t)
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	n := &noted{Delivery: d}
	r.exec.Drain()
	r.exec.Execute(t.Context(), n)
	require.Equal(t, "return", n.ended)
	require.Empty(t, *calls)
}
