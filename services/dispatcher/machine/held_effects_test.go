package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// The effect of a node that waits for MaxParallel was certainly not sent.
func TestHeld_ListsNodesThatWaitForMaxParallel(t *testing.T) {
	t.Parallel()
	var nodes []string
	for i := range 4 {
		nodes = append(nodes, charge(fmt.Sprint("n", i), `{"onUnknownOutcome":"retry"}`, ""))
	}
	p := calling(t, strings.Join(nodes, ","), "")
	l := &runlog{rec: record()}
	m := machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at), 2, "up to MaxParallel")
	require.Equal(t, wire.Note{Held: []string{"n2", "n3"}}, *m.Note())
	l.append(m)
	m.Complete(at, "n0", node.Output{}, wire.Untrusted)
	require.Len(t, m.Advance(at), 1)
	require.Equal(t, wire.Note{Begun: []string{"n2"}}, *m.Note())
	l.append(m)

	m = machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at.Add(time.Second)), 2)
	require.Equal(t, "node.retried@n1 node.started@n1 node.retried@n2 node.started@n2", strings.Join(names(m), " "), "n3 was not called")
	require.Nil(t, m.Note())
}

// The next executor begins a released effect without an event. If that executor is lost, the
// outcome is unknown again.
func TestRelease_TheNextExecutorBeginsAsForTheFirstTime(t *testing.T) {
	t.Parallel()
	p := calling(t, charge("a", "{}", ""), "")
	l := &runlog{rec: record()}
	m := machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at), 1)
	l.append(m)
	require.True(t, m.ReleaseEffects("a", "none"))
	require.Empty(t, names(m))
	require.Equal(t, wire.Note{Held: []string{"a"}}, *m.Note())
	l.append(m)

	m = machine.New(p, limits, l.state())
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Zero(t, effects[0].Attempt)
	require.Empty(t, names(m))
	require.Equal(t, wire.Note{Begun: []string{"a"}}, *m.Note(), "recorded before the effect begins")
	kept := l.frames
	l.append(m)

	m = machine.New(p, limits, l.state())
	m.Advance(at)
	require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "))

	l.frames = kept // the executor is lost before the append
	m = machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at), 1)
	require.Empty(t, names(m))
}

// An answer that was released between two rounds is continued in its attempt: recorded rounds are
// not repeated, and nothing is reported as lost. If the next executor is lost after more chunks, the
// outcome is unknown again.
func TestRelease_ContinuesAnAnswerBetweenRounds(t *testing.T) {
	t.Parallel()
	p := calling(t, one("a", "core.ai.callPrompt", "{}", "{}"), "")
	chunk := about(wire.EventOutputChunk, `{"nodeId":"a","chunk":"x"}`)
	l := &runlog{rec: record()}
	m := machine.New(p, limits, l.state())
	m.Advance(at)
	m.Emit(at, chunk, about(wire.EventProviderUsage, `{"nodeId":"a"}`),
		about(wire.EventEnvelopeRetryAttempted, `{"nodeId":"a","attempt":2,"reason":"truncation"}`))
	l.append(m)
	lost := *l
	require.True(t, m.ReleaseEffects("a"))
	require.Equal(t, wire.Note{Held: []string{"a"}}, *m.Note())
	l.append(m)

	m = machine.New(p, limits, l.state())
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Zero(t, effects[0].Attempt)
	require.Len(t, effects[0].Retries, 1)
	require.Empty(t, names(m))
	require.Equal(t, wire.Note{Begun: []string{"a"}}, *m.Note())
	m.Emit(at, chunk)
	l.append(m)
	for _, l := range []*runlog{l, &lost} {
		m = machine.New(p, limits, l.state())
		require.Len(t, m.Advance(at), 1)
		require.Equal(t, "node.retried@a node.started@a", strings.Join(names(m), " "))
	}
}

func TestRelease_LeavesWhatHasEnded(t *testing.T) {
	t.Parallel()
	p := calling(t, one("a", "core.ai.callPrompt", "{}", "{}"), "")
	m := machine.New(p, limits, runstate.New(record()))
	m.Advance(at)
	m.Complete(at, "a", node.Output{}, wire.Trusted)
	require.False(t, m.ReleaseEffects("a"))
}

// A request that starts a node does not begin its effect.
func TestHeld_ARequestOutsideTheSessionBeginsNoEffect(t *testing.T) {
	t.Parallel()
	p := calling(t, one("gate", "core.approvalGate", `{"title":"t","actions":["accept"]}`, "{}")+","+charge("a", "{}", ""), link("e", "gate", "a", ""))
	l := &runlog{rec: record()}
	m := machine.New(p, limits, l.state())
	require.Empty(t, m.Advance(at))
	l.append(m)
	m = machine.NewChange(p, limits, l.state())
	m.Resolve(at, "gate", decide(t, m, "gate", `{"action":"accept"}`))
	m.Advance(at)
	require.Equal(t, wire.Note{Held: []string{"a"}}, *m.Note())
	l.append(m)

	m = machine.New(p, limits, l.state())
	require.Len(t, m.Advance(at.Add(time.Minute)), 1)
	require.Empty(t, names(m))
}

// A branch has not sent the call that its copied history begins.
func TestHeld_ABranchSendsTheCallInFlightOfItsSource(t *testing.T) {
	t.Parallel()
	p := calling(t, charge("a", "{}", ""), "")
	source := lost(t, p)
	fork := &runlog{rec: record(func(r *wire.RunRecord) {
		r.RunID = "run_2"
		r.Fork = &wire.Fork{
			SourceRunID: "run_1",
			Mode:        wire.ForkBranch,
			FromSeq:     len(source.events),
			Head:        len(source.events),
		}
	})}
	for _, e := range source.events {
		fork.frames = append(fork.frames, func(st *runstate.State) { st.Apply(e) })
	}
	m := machine.New(p, limits, fork.state())
	require.Len(t, m.Advance(at), 1)
	require.Empty(t, names(m))
	require.Equal(t, []string{"a"}, m.Note().Begun)
	fork.append(m)
	m = machine.New(p, limits, fork.state())
	require.Empty(t, m.Advance(at))
	require.Equal(t, "node.failed@a run.failed", strings.Join(names(m), " "))
}
