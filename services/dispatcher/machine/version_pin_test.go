package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// changed returns a plan whose node type has a change with a range of versions.
func changed(t *testing.T, lowest, highest int, saw *[]int) machine.Plan {
	t.Helper()
	p := graph{nodes: []string{"a:core.noop", "b:core.noop"}, edges: []string{"a>b"}}.plan(t)
	p.Types["core.noop"] = node.Type{
		ID:      "core.noop",
		Changes: []node.Change{{ID: "ch", Min: lowest, Max: highest}},
		Do: func(in node.Input) (node.Output, *wire.NodeError) {
			*saw = append(*saw, in.Versions["ch"])
			return node.Output{}, nil
		},
	}
	return p
}

// OpenWOP host contract §7.4: the first node that uses a change pins the newest version and records
// it once.
func TestPins_SettleForTheNewestVersionOnce(t *testing.T) {
	t.Parallel()
	var saw []int
	m := machine.New(changed(t, 1, 3, &saw), limits, runstate.New(record()))
	m.Advance(at)
	require.Equal(t, "run.started node.started@a version.pinned node.completed@a node.started@b node.completed@b run.completed", strings.Join(names(m), " "))
	require.JSONEq(t, `{"changeId":"ch","version":3}`, payloadOf(t, m, wire.EventVersionPinned))
	require.Equal(t, []int{3, 3}, saw)
}

// OpenWOP host contract §7.4: newer code uses the pinned version. Code without that version fails
// the node.
func TestPins_HoldForTheRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lowest, highest int
		code            string
	}{
		"newer code that has it": {1, 9, ""}, "newer code that has not": {4, 9, "version_out_of_range"}, "older code": {1, 2, "version_out_of_range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var saw []int
			started, pinned := wire.Draft{Type: wire.EventRunStarted}, wire.Draft{
				Type:    wire.EventVersionPinned,
				Payload: []byte(`{"changeId":"ch","version":3}`),
			}
			again := wire.Draft{Type: wire.EventVersionPinned, Payload: []byte(`{"changeId":"ch","version":5}`)}
			st := runstate.Fold(record(), []wire.Event{started.Place("run_1", 0, at), pinned.Place("run_1", 1, at), again.Place("run_1", 2, at)})
			m := machine.New(changed(t, c.lowest, c.highest, &saw), limits, st)
			m.Advance(at)
			if c.code != "" {
				require.Equal(t, c.code, m.State().Error.Code)
				require.Empty(t, saw)
				return
			}
			require.Equal(t, []int{3, 3}, saw)
		})
	}
}

// OpenWOP host contract §7.2, §7.4: a replay keeps the pinned version of its source, although the
// code has a newer one.
func TestPins_OfAReplayAreItsSources(t *testing.T) {
	t.Parallel()
	var then, now []int
	m := machine.New(changed(t, 1, 3, &then), limits, runstate.New(record()))
	m.Advance(at)
	source := appended(m)
	for from := range source {
		rec := record(func(r *wire.RunRecord) {
			r.RunID, r.Fork = "run_2", &wire.Fork{
				SourceRunID: "run_1",
				Mode:        wire.ForkReplay,
				FromSeq:     from,
				Head:        len(source),
			}
		})
		var history []wire.Event
		for _, e := range source[:from] {
			history = append(history, machine.CopyEvent(rec, e, at))
		}
		replay := machine.NewReplay(changed(t, 1, 9, &now), limits, runstate.Fold(rec, history), machine.NewHistory(*rec.Fork, source, history))
		replay.Advance(at)
		require.Equal(t, wire.StatusCompleted, replay.State().Status)
		require.Equal(t, map[string]int{"ch": 3}, replay.State().Pins, "from %d", from)
		require.NotContains(t, names(replay), "replay.diverged", "from %d", from)
	}
	require.NotContains(t, now, 9)
}
