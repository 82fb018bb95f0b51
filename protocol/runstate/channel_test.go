package runstate_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// pinned returns a record with channels.
func pinned(channels map[string]wire.Channel) *wire.RunRecord {
	r := record()
	r.Channels, r.CreatedAt = channels, wire.FormatTime(at)
	return r
}

// OpenWOP host contract §3.2 and §5.9: snapshot and variables hold the values of the channels.
func TestChannels_AreInSnapshotAndVariables(t *testing.T) {
	t.Parallel()
	rec := pinned(map[string]wire.Channel{"n": {Reducer: "counter", Default: json.RawMessage(`1`)}, "l": {Reducer: "append"}, "r": {Reducer: "replace"}})
	s := runstate.Fold(rec, events([]fact{{t: wire.EventRunStarted}}))
	require.JSONEq(t, `{"n":1,"l":[]}`, mustJSON(t, s.Snapshot().Channels))
	require.JSONEq(t, `{"a":1,"b":2,"n":1}`, mustJSON(t, s.Variables), "a channel without write or default is not a variable")
	s = runstate.Fold(rec, events([]fact{
		{t: wire.EventRunStarted},
		{t: wire.EventChannelWritten, node: "x", payload: `{"channel":"n","value":2,"reducer":"counter"}`},
		{t: wire.EventChannelWritten, payload: `{"channel":"seen","value":2,"reducer":"append"}`},
		{t: wire.EventChannelWritten, payload: `{"value":2}`},
	}))
	require.JSONEq(t, `{"n":3,"l":[],"seen":[2]}`, mustJSON(t, s.Snapshot().Channels), "an undeclared channel is defined by its events")
	require.JSONEq(t, `3`, string(s.Variables["n"]))
	require.Nil(t, runstate.New(record()).Snapshot().Channels)
}

// OpenWOP host contract §5.9: old entries are dropped on read, and the start of a node is a read.
func TestChannels_DropOldEntriesWhenANodeStarts(t *testing.T) {
	t.Parallel()
	rec := pinned(map[string]wire.Channel{"l": {Reducer: "append", TTLMillis: 1500}})
	log := []fact{ // one per second
		{t: wire.EventRunStarted},
		{t: wire.EventChannelWritten, payload: `{"channel":"l","value":1,"reducer":"append"}`},
		{t: "acme.thing.happened"},
		{t: "acme.thing.happened"},
	}
	require.Contains(t, string(runstate.Fold(rec, events(log)).Variables["l"]), `"value":1`)
	log = append(log, fact{t: wire.EventNodeStarted, node: "n", payload: `{"nodeId":"n"}`})
	require.JSONEq(t, `[]`, string(runstate.Fold(rec, events(log)).Variables["l"]))
}

// A sensitive channel shows the record's replacement instead of its value.
func TestChannels_MaskSensitiveValues(t *testing.T) {
	t.Parallel()
	rec := pinned(map[string]wire.Channel{"c": {Reducer: "counter", Shown: json.RawMessage(`"[REDACTED]"`)}})
	s := runstate.Fold(rec, events([]fact{{t: wire.EventRunStarted}, {t: wire.EventChannelWritten, payload: `{"channel":"c","value":"[REDACTED]","reducer":"counter"}`}}))
	require.JSONEq(t, `{"c":"[REDACTED]"}`, mustJSON(t, s.Snapshot().Channels))
	require.JSONEq(t, `"[REDACTED]"`, string(s.Variables["c"]))
}

// Folding a log in parts yields the same state as folding it whole.
func TestChannels_FoldInPartsEqualsFoldingWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rec := pinned(map[string]wire.Channel{"c": {Reducer: "append", MaxSize: 3, TTLMillis: rapid.Int64Range(0, 5000).Draw(rt, "ttl")}})
		log := []fact{{t: wire.EventRunStarted}}
		for range rapid.IntRange(0, 8).Draw(rt, "events") {
			log = append(log, rapid.SampledFrom([]fact{
				{t: wire.EventChannelWritten, payload: `{"channel":"c","value":1,"reducer":"append"}`},
				{t: wire.EventChannelWritten, payload: `{"channel":"c","value":{"x":1},"reducer":"merge"}`, trust: wire.Untrusted},
				{t: wire.EventChannelWritten, payload: `{"channel":"c","value":2,"reducer":"replace"}`},
				{t: wire.EventNodeStarted, node: "n", payload: `{"nodeId":"n"}`},
			}).Draw(rt, "event"))
		}
		whole, all := runstate.Fold(rec, events(log)), events(log)
		cut := rapid.IntRange(0, len(all)).Draw(rt, "cut")
		parts := runstate.Fold(rec, all[:cut])
		for _, e := range append(all[:cut:cut], all[cut:]...) { // events already folded are ignored
			parts.Apply(e)
		}
		require.Equal(rt, whole.Snapshot(), parts.Snapshot())
		require.Equal(rt, whole.Tainted, parts.Tainted)
	})
}

// OpenWOP host contract §10.2: costs apart from model calls are added to the totals.
func TestCost_SumsCostsReportedByNodes(t *testing.T) {
	t.Parallel()
	s := fold(
		t, fact{t: wire.EventRunStarted},
		fact{t: wire.EventProviderUsage, payload: `{"provider":"p","model":"m","inputTokens":1,"outputTokens":2,"costEstimateUsd":1}`},
		fact{t: wire.EventLogAppended, payload: `{"fields":{"openwop.cost.usd":0.5,"openwop.cost.currency":"usd","openwop.cost.tokens.input":10,"openwop.cost.provider":"q","openwop.cost.evil":1}}`},
		fact{t: wire.EventLogAppended, payload: `{"fields":{"openwop.cost.usd":7,"openwop.cost.currency":"eur"}}`},
		fact{t: wire.EventLogAppended, payload: `{"fields":{"openwop.cost.usd":7}}`, cause: "c"},
	)
	require.JSONEq(t, `{"usd":1.5,"tokens":{"input":11,"output":2},"provider":"q"}`, mustJSON(t, s.Snapshot().Metrics.Cost))
}

// OpenWOP host contract §7.4: the first pinned version stays.
func TestPins_KeepTheFirstVersion(t *testing.T) {
	t.Parallel()
	s := fold(t, fact{t: wire.EventVersionPinned, payload: `{"changeId":"c","version":2}`}, fact{t: wire.EventVersionPinned, payload: `{"changeId":"c","version":3}`})
	require.Equal(t, map[string]int{"c": 2}, s.Pins)
}
