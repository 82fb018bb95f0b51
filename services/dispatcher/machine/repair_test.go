package machine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// A fork whose history ends within the events of a pure node has the same result as its source. No
// value is written twice, and the node does not read its own writes.
func TestFork_TornInAPureNodeEndsAsItsSource(t *testing.T) {
	t.Parallel()
	reads := `{"value":{"type":"expression","expression":"variables.x + 1"}}`
	for name, plan := range map[string]machine.Plan{
		"a counter":               planOf(t, one("a", "core.channelWrite", `{"channelName":"n","reducer":"counter","value":5}`, "{}"), "", noVars),
		"a list":                  planOf(t, one("a", "core.channelWrite", `{"channelName":"l","reducer":"append","ttlMs":3600000,"value":"v"}`, "{}"), "", noVars),
		"several variables":       planOf(t, one("a", "core.identity", "{}", `{"p":{"type":"static","value":1},"q":{"type":"static","value":2},"r":{"type":"static","value":3}}`), "", noVars),
		"one that reads itself":   planOf(t, one("a", "core.setVariable", `{"name":"x"}`, reads), "", noVars),
		"a loop that is too long": planOf(t, one("a", "core.loop", `{"count":6,"expression":"index"}`, "{}"), "", noVars),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			created := func(id string) *wire.RunRecord {
				return record(func(r *wire.RunRecord) {
					r.RunID, r.Channels, r.CreatedAt = id, plan.Def.PinnedChannels(), wire.FormatTime(at)
					r.Inputs = map[string]json.RawMessage{"x": json.RawMessage(`1`)}
				})
			}
			source := machine.New(plan, limits, runstate.New(created("run_1")))
			require.Empty(t, source.Advance(at))
			log := appended(source)
			require.True(t, source.State().Status.Terminal())
			for _, mode := range []wire.ForkMode{wire.ForkBranch, wire.ForkReplay} {
				for from := range log {
					rec := created("run_2")
					rec.Fork = &wire.Fork{
						SourceRunID: "run_1",
						Mode:        mode,
						FromSeq:     from,
						Head:        len(log),
						Since:       rec.CreatedAt,
					}
					fork, events := forked(t, plan, rec, log)
					require.Len(t, events, len(log), "%s from %d", mode, from)
					got, want := fork.State().Snapshot(), source.State().Snapshot()
					require.Equal(t, want.Status, got.Status)
					require.Equal(t, want.Error, got.Error)
					if mode == wire.ForkBranch && from < 3 && name == "a list" {
						continue // the fork writes at another time
					}
					require.Equal(t, want.Variables, got.Variables, "%s from %d", mode, from)
					require.Equal(t, want.Channels, got.Channels, "%s from %d", mode, from)
				}
			}
		})
	}
}

// forked executes a fork of a log, a minute later.
func forked(t *testing.T, plan machine.Plan, rec *wire.RunRecord, source []wire.Event) (fork *machine.Machine, itsLog []wire.Event) {
	t.Helper()
	now := at.Add(time.Minute)
	var own []wire.Event
	for _, e := range source[:rec.Fork.FromSeq] {
		own = append(own, machine.CopyEvent(rec, e, now))
	}
	create := machine.NewBranch
	if rec.Replays() {
		create = machine.NewReplay
	}
	m := create(plan, limits, runstate.Fold(rec, own), machine.NewHistory(*rec.Fork, source, own))
	require.Empty(t, m.Advance(now))
	events, _ := m.Pending()
	return m, append(own, events...)
}

// A branch that starts within a node whose model has written a part runs the node again. That is no
// failure, and uses no retry.
func TestFork_ABranchWithinAStreamStartsTheNodeAgain(t *testing.T) {
	t.Parallel()
	p := calling(t, one("a", "core.ai.callPrompt", "{}", "{}", `{"maxRetries":0}`), "")
	l := lost(t, p, about(wire.EventOutputChunk, `{"nodeId":"a","chunk":"hm","isLast":false}`))
	rec := record(func(r *wire.RunRecord) {
		r.RunID, r.CreatedAt = "run_2", wire.FormatTime(at)
		r.Fork = &wire.Fork{SourceRunID: "run_1", Mode: wire.ForkBranch, FromSeq: len(l.events), Head: len(l.events), Since: wire.FormatTime(at)}
	})
	own := make([]wire.Event, len(l.events))
	for i, e := range l.events {
		own[i] = machine.CopyEvent(rec, e, at)
	}
	m := machine.NewBranch(p, limits, runstate.Fold(rec, own), machine.NewHistory(*rec.Fork, l.events, own))
	effects := m.Advance(at)
	require.Len(t, effects, 1)
	require.Equal(t, 1, effects[0].Attempt)
	require.Equal(t, "node.retried@a node.started@a", strings.Join(names(m), " "))
	require.JSONEq(t, `{"nodeId":"a","attempt":1,"delayMs":0,"reason":"branched"}`, payloadOf(t, m, wire.EventNodeRetried))
	st := m.State()
	require.Equal(t, 1, st.Executions)
	require.Nil(t, st.Nodes["a"].Error)
	require.Equal(t, 1, st.Nodes["a"].Spared)
}
