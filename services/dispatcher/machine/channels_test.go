package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// planned returns the plan of a chain of nodes, each "id:type:config", with channels.
func planned(t *testing.T, channels string, nodes ...string) machine.Plan {
	t.Helper()
	var list, edges []string
	for i, n := range nodes {
		parts := strings.SplitN(n, ":", 3)
		list = append(list, fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"x","position":{"x":0,"y":0},%s}`, parts[0], parts[1], parts[2]))
		if i > 0 {
			before, _, _ := strings.Cut(nodes[i-1], ":")
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":%q,"targetNodeId":%q}`, i, before, parts[0]))
		}
	}
	def, problems := workflow.Parse([]byte(fmt.Sprintf(
		`{"id":"wf","name":"wf","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"channels":%s,"metadata":{},"settings":{}}`,
		strings.Join(list, ","), strings.Join(edges, ","), channels)))
	require.Empty(t, problems)
	return machine.Plan{Def: def, Graph: workflow.Compile(def), Types: node.Builtin().Conformance(nil)}
}

// begun returns a machine whose run pins the plan's channels.
func begun(p machine.Plan) *machine.Machine {
	return machine.New(p, limits, runstate.New(record(func(r *wire.RunRecord) {
		r.Channels, r.CreatedAt = p.Def.PinnedChannels(), wire.FormatTime(at)
	})))
}

func writes(name, value string) string {
	return `"config":{"channelName":"` + name + `","value":` + value + `},"inputs":{}`
}

// OpenWOP host contract §5.9: channel.written contains the written value, not the value of the
// channel.
func TestChannels_RecordTheInputOfAWrite(t *testing.T) {
	t.Parallel()
	m := begun(planned(t, `{"c":{"reducer":"counter","schemaVersion":2}}`, "a:core.channelWrite:"+writes("c", `2`), "b:core.channelWrite:"+writes("c", `3`)))
	require.Empty(t, m.Advance(at))
	require.Equal(t, "run.started node.started@a channel.written@a node.completed@a node.started@b channel.written@b node.completed@b run.completed", strings.Join(names(m), " "))
	require.JSONEq(t, `{"channel":"c","value":2,"reducer":"counter","nodeId":"a","writtenAt":"2026-05-01T12:00:00.000Z","schemaVersion":2}`, payloadOf(t, m, wire.EventChannelWritten))
	snap := m.State().Snapshot()
	require.JSONEq(t, `5`, string(snap.Channels["c"]))
	require.JSONEq(t, `5`, string(snap.Variables["c"]))
}

// OpenWOP host contract §5.6: a write to an undeclared channel declares it.
func TestChannels_AreDeclaredByTheirWriters(t *testing.T) {
	t.Parallel()
	config := func(v string) string {
		return `"config":{"channelName":"events","reducer":"append","ttlMs":200,"value":"` + v + `"},"inputs":{}`
	}
	m := begun(planned(t, `{}`, "a:core.channelWrite:"+config("a"), "wait:core.delay:"+`"config":{"ms":300},"inputs":{}`, "d:core.channelWrite:"+config("d")))
	require.Empty(t, m.Advance(at))
	require.Contains(t, string(m.State().Variables["events"]), `"a"`)
	later := at.Add(300 * time.Millisecond)
	require.Empty(t, m.Advance(later))
	require.Equal(t, wire.StatusCompleted, m.State().Status)
	require.JSONEq(t, fmt.Sprintf(`[{"value":"d","_ts":%d}]`, later.UnixMilli()), string(m.State().Snapshot().Variables["events"]))
}

// Another process folds the log to the same channels.
func TestChannels_FoldFromTheLogAsTheyDidInTheRun(t *testing.T) {
	t.Parallel()
	m := begun(planned(t, `{"v":{"reducer":"votes","ttlMs":1000}}`,
		"a:core.channelWrite:"+writes("v", `{"voter":"x","vote":1}`), "b:core.channelWrite:"+writes("v", `{"voter":"y","vote":1}`), "c:core.channelWrite:"+writes("v", `{"voter":"x","vote":2}`)))
	m.Advance(at)
	events, _ := m.Pending()
	require.Equal(t, m.State().Snapshot(), runstate.Fold(m.State().Record, events).Snapshot())
}

// OpenWOP host contract §5.9: only the nodes and types in access.writers may write.
func TestChannels_RejectNodesThatAreNotListed(t *testing.T) {
	t.Parallel()
	const reads = `"config":{},"inputs":{"v":{"type":"variable","variableName":"c"}}`
	for name, c := range map[string]struct{ access, node, allowed string }{
		"a writer by node":      {`{"writers":["b"]}`, "a:core.channelWrite:" + writes("c", `1`), "writers"},
		"a writer by type":      {`{"writers":["core.identity"]}`, "a:core.channelWrite:" + writes("c", `1`), "writers"},
		"any reader of private": {`"private"`, "a:core.channelWrite:" + writes("c", `1`), "writers"},
		"a reader":              {`{"readers":["b"]}`, "a:core.identity:" + reads, "readers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := begun(planned(t, `{"c":{"reducer":"append","default":[1],"access":`+c.access+`}}`, c.node))
			m.Advance(at)
			require.Equal(t, wire.StatusFailed, m.State().Status)
			require.Equal(t, "channel_access_denied", m.State().Error.Code)
			require.Contains(t, m.State().Error.Message, `add its id or its type to access.`+c.allowed)
			require.Equal(t, c.allowed, m.State().Error.Details["allowed"])
		})
	}
	m := begun(planned(t, `{"c":{"reducer":"append","access":{"writers":["core.*"],"readers":["r"]}}}`, "w:core.channelWrite:"+writes("c", `1`), "r:core.identity:"+strings.ReplaceAll(reads, `"v"`, `"seen"`)))
	m.Advance(at)
	require.Equal(t, wire.StatusCompleted, m.State().Status)
	require.JSONEq(t, `[1]`, string(m.State().Variables["seen"]))
}

// A channel is missing from the variables of a node that may not read it.
func TestChannels_AreHiddenFromNonReaders(t *testing.T) {
	t.Parallel()
	p := planned(t, `{"c":{"reducer":"append","default":[1],"access":{"readers":["other"]}},"d":{"reducer":"counter"}}`, `a:core.noop:"config":{},"inputs":{}`)
	var seen node.Input
	p.Types["core.noop"] = node.Type{ID: "core.noop", Do: func(in node.Input) (node.Output, *wire.NodeError) {
		seen = in
		return node.Output{}, nil
	}}
	m := begun(p)
	m.Advance(at)
	require.NotContains(t, seen.Variables, "c")
	require.Contains(t, m.State().Variables, "c")
	require.Equal(t, map[string]string{"c": "append", "d": "counter"}, seen.Channels)
}

// OpenWOP host contract §5.9: a write is validated against the channel's schema.
func TestChannels_RejectValuesThatViolateTheirSchema(t *testing.T) {
	t.Parallel()
	m := begun(planned(t, `{"c":{"reducer":"append","schema":{"type":"string"}}}`, "a:core.channelWrite:"+writes("c", `1`)))
	m.Advance(at)
	require.Equal(t, "run.started node.started@a node.failed@a run.failed", strings.Join(names(m), " "), "no write was recorded")
	require.Equal(t, "validation_error", m.State().Error.Code)
	require.Contains(t, m.State().Error.Message, "schema")
}

// OpenWOP host contract §5.9: reads and writes fail if the channel contains a write of an
// incompatible schema version.
func TestChannels_BreakForReadersAndWritersAlike(t *testing.T) {
	t.Parallel()
	const channels = `{"c":{"reducer":"append","schemaVersion":2}}`
	for name, n := range map[string]string{
		"a writer": "a:core.channelWrite:" + writes("c", `1`),
		"a reader": `a:core.identity:"config":{},"inputs":{"v":{"type":"variable","variableName":"c"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planned(t, channels, n)
			rec := record(func(r *wire.RunRecord) { r.Channels = p.Def.PinnedChannels() })
			old := wire.Draft{
				Type:    wire.EventChannelWritten,
				Payload: json.RawMessage(`{"channel":"c","value":1,"reducer":"append","writtenAt":"2026-05-01T12:00:00.000Z"}`),
			}
			started := wire.Draft{Type: wire.EventRunStarted}
			st := runstate.Fold(rec, []wire.Event{started.Place("run_1", 0, at), old.Place("run_1", 1, at)})
			require.Nil(t, st.Snapshot().Channels, "a broken channel has no value")
			m := machine.New(p, limits, st)
			m.Advance(at)
			require.Equal(t, "channel_schema_breaking_change", m.State().Error.Code)
			require.Equal(t, "ev_run_1_1", m.State().Error.Details["incompatibleEventId"])
		})
	}
}

// A node cannot write a variable with the name of a channel.
func TestChannels_KeepTheVariableOfTheirName(t *testing.T) {
	t.Parallel()
	m := begun(planned(t, `{"c":{"reducer":"append"}}`, `a:core.identity:"config":{},"inputs":{"c":{"type":"static","value":1}}`))
	m.Advance(at)
	require.Equal(t, "validation_error", m.State().Error.Code)
	require.Contains(t, m.State().Error.Message, "core.channelWrite")
}

// OpenWOP envelope contract §12: a channel is untrusted after an untrusted write.
func TestChannels_AreAsTrustedAsTheirWrites(t *testing.T) {
	t.Parallel()
	m := machine.New(planned(t, `{"c":{"reducer":"append"}}`, "a:core.channelWrite:"+writes("c", `1`)), limits,
		runstate.New(record(func(r *wire.RunRecord) { r.TrustBoundary = wire.Untrusted })))
	m.Advance(at)
	require.True(t, m.State().Tainted["c"])
}

// The node writes the same message twice, and the channel contains it once.
func TestChannels_StoreARepeatedMessageOnce(t *testing.T) {
	t.Parallel()
	m := begun(planned(t, `{"messages":{"schema":{"type":"array"},"reducer":"message"},"other":{"reducer":"append"}}`, `say:core.identity:"config":{"emitDuplicateMessageId":true},"inputs":{}`))
	m.Advance(at)
	require.Equal(t, "run.started node.started@say channel.written@say channel.written@say node.completed@say run.completed", strings.Join(names(m), " "))
	got, err := json.Marshal(m.State().Snapshot().Channels)
	require.NoError(t, err)
	require.JSONEq(t, `{"messages":[{"messageId":"say-1","role":"assistant","content":"once"}],"other":[]}`, string(got))
}
