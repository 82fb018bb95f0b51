package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// counting is a side effect that counts its calls.
func counting(calls *int) models {
	return func(context.Context, model.Task, model.Journal) model.Result {
		*calls++
		return model.Result{Output: node.Output{}}
	}
}

// Two dispatchers die, each at any of its appends. A call with an unknown outcome is made once
// unless its node says retry, and each repeated call is recorded.
func TestUnknownOutcome_AtEveryCrashPoint(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		`{}`:                           "outcome_unknown",
		`{"onUnknownOutcome":"retry"}`: "",
		`{"onUnknownOutcome":"ask"}`:   "waits",
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			unknown, repeats := 0, 0
			for _, stores := range []bool{false, true} {
				for first := range 4 {
					for second := range 4 {
						st, calls := dieTwice(t, settings, stores, first, second)
						n := st.Nodes["a"]
						require.LessOrEqual(t, calls, 1+n.Lost, "each repeated call is in the log")
						repeats += calls - 1
						switch {
						case n.Status == runstate.NodeCompleted:
							require.Equal(t, wire.StatusCompleted, st.Status)
						case want == "waits":
							require.Equal(t, wire.StatusWaitingExternal, st.Status)
							require.LessOrEqual(t, calls, 1)
							unknown++
						default:
							require.Equal(t, want, n.Error.Code)
							require.LessOrEqual(t, calls, 1)
							unknown++
						}
					}
				}
			}
			if want == "" {
				require.Positive(t, repeats)
			} else {
				require.Positive(t, unknown)
			}
		})
	}
}

// dieTwice kills two dispatchers after numbers of appends, and lets a third one complete the run.
func dieTwice(t *testing.T, settings string, stores bool, first, second int) (end *runstate.State, executed int) {
	t.Helper()
	calls := 0
	r := newRig(t, nil, nil)
	r.moreTypes = node.Catalog{node.TypeSideEffect: {ID: node.TypeSideEffect, Class: node.Effect}}
	tool := strings.TrimSuffix(nodeJSON("a", node.TypeSideEffect, "{}"), "}") + `,"settings":` + settings + `}`
	defs := define(t, tool+","+nodeJSON("b", "core.noop", "{}"), edgeAB)
	r.create(t)
	for _, appends := range []int{first, second, -1} {
		if waiting, _ := r.log.Backlog(); waiting == 0 {
			break
		}
		r.exec = r.executorOn(&mortal{Log: r.log, appends: appends, stores: stores}, defs, counting(&calls))
		r.next(t)
		r.log.Expire()
	}
	st, _ := r.state(t)
	return st, calls
}

// A person decides through the API, and another dispatcher applies the decision.
func TestUnknownOutcome_IsDecidedByAnAnswer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]wire.Status{
		`{"choice":"retry"}`: wire.StatusCompleted, `{"choice":"fail"}`: wire.StatusFailed,
		`{"choice":"use-result","outputs":{"output":7}}`: wire.StatusCompleted,
	} {
		calls := 0
		r := newRig(t, nil, nil)
		r.moreTypes = node.Catalog{node.TypeSideEffect: {ID: node.TypeSideEffect, Class: node.Effect}}
		tool := strings.TrimSuffix(nodeJSON("a", node.TypeSideEffect, "{}"), "}") + `,"settings":{"onUnknownOutcome":"ask"}}`
		defs := define(t, tool)
		r.create(t)
		r.exec = r.executorOn(&mortal{Log: r.log, appends: 1}, defs, counting(&calls))
		r.next(t)
		r.log.Expire()
		r.exec = r.executor(defs, counting(&calls))
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusWaitingExternal, st.Status)
		require.Equal(t, 1, calls)

		ann := engine.Answer{NodeID: "a"}
		ann.Value, ann.By.Principal = []byte(answer), "ann"
		_, err := r.exec.Resolve(t.Context(), "acme", "run_1", ann)
		require.NoError(t, err)
		if waiting, _ := r.log.Backlog(); waiting > 0 {
			r.next(t)
		}
		st, _ = r.state(t)
		require.Equal(t, want, st.Status)
		if strings.Contains(answer, "retry") {
			require.Equal(t, 2, calls)
		} else {
			require.Equal(t, 1, calls)
		}
	}
}

// A call that was certainly not sent is a first attempt for the next dispatcher.
func TestUnknownOutcome_NotOfACallThatWasNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	r.moreTypes = node.Catalog{node.TypeSideEffect: {ID: node.TypeSideEffect, Class: node.Effect}}
	defs, tries := define(t, nodeJSON("a", node.TypeSideEffect, "{}")), 0
	r.exec = r.executor(defs, models(func(_ context.Context, task model.Task, _ model.Journal) model.Result {
		require.Zero(t, task.Attempt)
		if tries++; tries == 1 {
			return model.Result{Interrupted: errors.New("not connected"), Unsent: true}
		}
		return model.Result{Output: node.Output{}}
	}))
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.True(t, st.Nodes["a"].Held)
	require.JSONEq(t, `{"held":["a"]}`, frames[len(frames)-1].Note)
	r.next(t) // delivered again
	st, frames = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, 2, tries)
	require.JSONEq(t, `{"begun":["a"]}`, frames[len(frames)-2].Note)
}
