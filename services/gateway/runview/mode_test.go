package runview_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/runview"
)

// parsed reads a list that must be good.
func parsed(t *testing.T, list ...string) runview.Modes {
	t.Helper()
	m, err := runview.ParseModes(list)
	require.NoError(t, err)
	return m
}

const (
	hidden = runview.Hidden
	event  = runview.AsEvent
	chunk  = runview.AsChunk
	values = runview.AsValues
)

// table is OpenWOP host contract §4.3, one row per event type.
var table = []struct {
	types                            []wire.EventType
	updates, values, messages, debug runview.Form
}{
	{
		[]wire.EventType{
			"run.started", "run.completed", "run.failed", "run.cancelled", "run.paused", "run.resumed", "run.annotated",
			"node.completed", "node.failed", "node.skipped", "node.suspended", "node.dispatched", "node.cancelled",
			"approval.requested", "approval.received", "clarification.requested", "clarification.resolved",
			"interrupt.requested", "interrupt.resolved", "artifact.created",
		},
		event, values, hidden, event,
	},
	{[]wire.EventType{"node.started"}, hidden, values, hidden, event},
	{
		[]wire.EventType{
			"node.retried", "variable.changed", "version.pinned", "lease.acquired", "lease.lost", "log.appended",
			"cap.breached", "provider.usage", "model.capability.insufficient", "model.capability.substituted",
			"envelope.retry.attempted", "envelope.retry.exhausted", "envelope.refusal", "envelope.truncated",
			"envelope.nlToFormat.engaged", "envelope.recovery.applied", "replay.diverged", "channel.written",
			"node.resumed", "vendor.acme.thing", "no.such.type", "",
		},
		hidden, hidden, hidden, event,
	},
	{[]wire.EventType{"output.chunk"}, hidden, hidden, chunk, event},
}

func TestForm_IsTheTableOfSingleModes(t *testing.T) {
	t.Parallel()
	for _, row := range table {
		for _, typ := range row.types {
			require.Equal(t, row.updates, parsed(t, "updates").Form(typ), "updates %s", typ)
			require.Equal(t, row.values, parsed(t, "values").Form(typ), "values %s", typ)
			require.Equal(t, row.messages, parsed(t, "messages").Form(typ), "messages %s", typ)
			require.Equal(t, row.debug, parsed(t, "debug").Form(typ), "debug %s", typ)
		}
	}
}

func TestForm_DefaultsToUpdates(t *testing.T) {
	t.Parallel()
	m, err := runview.ParseModes(nil)
	require.NoError(t, err)
	for _, row := range table {
		for _, typ := range row.types {
			require.Equal(t, row.updates, m.Form(typ), typ)
		}
	}
}

func TestForm_OfMixedModesIsTheUnion(t *testing.T) {
	t.Parallel()
	combine := func(forms ...runview.Form) runview.Form {
		out := hidden
		for _, f := range forms {
			if f == chunk || out == hidden { // a chunk keeps its own form when modes are combined
				out = f
			}
		}
		return out
	}
	for _, row := range table {
		for _, typ := range row.types {
			require.Equal(t, combine(row.updates, row.messages), parsed(t, "updates,messages").Form(typ), "updates,messages %s", typ)
			require.Equal(t, combine(row.updates, row.debug), parsed(t, "updates,debug").Form(typ), "updates,debug %s", typ)
			require.Equal(t, combine(row.messages, row.debug), parsed(t, "debug,messages").Form(typ), "messages,debug %s", typ)
			require.Equal(t, combine(row.updates, row.messages, row.debug), parsed(t, "updates", "messages,debug").Form(typ), "all %s", typ)
		}
	}
}

func TestForm_DebugShowsAllThatUpdatesShows(t *testing.T) {
	t.Parallel()
	for _, row := range table {
		for _, typ := range row.types {
			if parsed(t, "updates").Form(typ) != hidden {
				require.Equal(t, event, parsed(t, "debug").Form(typ), typ)
			}
		}
	}
}

func TestForm_EveryTerminalEventIsShownInEveryModeOfEvents(t *testing.T) {
	t.Parallel()
	for _, typ := range []wire.EventType{wire.EventRunCompleted, wire.EventRunFailed, wire.EventRunCancelled} {
		require.True(t, typ.Terminal(), typ)
		require.Equal(t, event, parsed(t, "updates").Form(typ))
		require.Equal(t, values, parsed(t, "values").Form(typ))
		require.Equal(t, hidden, parsed(t, "messages").Form(typ), "messages ends without it")
	}
}

func TestParseModes_TakesListsInAnyForm(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"one":             {"updates"},
		"comma list":      {"updates,debug"},
		"repeated":        {"updates", "debug"},
		"both":            {"updates,messages", "debug"},
		"the same twice":  {"debug,debug"},
		"values twice":    {"values", "values"},
		"values alone":    {"values"},
		"messages":        {"messages"},
		"all but values":  {"messages,updates,debug"},
		"no entry at all": {},
	}
	for name, list := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runview.ParseModes(list)
			require.NoError(t, err)
		})
	}
}

func TestParseModes_RefusesWhatIsNotServed(t *testing.T) {
	t.Parallel()
	cases := map[string][]string{
		"unknown":             {"everything"},
		"one bad of many":     {"updates,bogus"},
		"values and another":  {"values,updates"},
		"values and messages": {"messages", "values"},
		"values and debug":    {"debug,values"},
		"empty":               {""},
		"empty entry":         {"updates,"},
		"upper case":          {"Updates"},
		"white space":         {"updates, debug"},
		"long":                {strings.Repeat("x", 100_000)},
	}
	for name, list := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runview.ParseModes(list)
			e, ok := fault.As(err)
			require.True(t, ok)
			require.Equal(t, fault.UnsupportedStreamMode, e.Code)
			require.Equal(t, []runview.Mode{"values", "updates", "messages", "debug"}, e.Details["supported"])
			require.Less(t, len(e.Message), 200, "the caller's words are not echoed")
		})
	}
}

func TestSnapshots_AreValuesAlone(t *testing.T) {
	t.Parallel()
	require.True(t, parsed(t, "values").Snapshots())
	for _, other := range []string{"updates", "messages", "debug", "updates,messages,debug"} {
		require.False(t, parsed(t, other).Snapshots(), other)
	}
	require.False(t, parsed(t).Snapshots())
}

func FuzzParseModes_OfSeveralEntries(f *testing.F) {
	for _, seed := range []string{"", "values", "updates,debug", "values,values", ",", "messages,,", "\x00"} {
		f.Add(seed, "debug")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		m, err := runview.ParseModes([]string{a, b})
		if err != nil {
			require.Equal(t, fault.UnsupportedStreamMode, fault.CodeOf(err))
			require.Equal(t, runview.Modes{}, m)
			return
		}
		for name := range strings.SplitSeq(a+","+b, ",") {
			require.Contains(t, []string{"values", "updates", "messages", "debug"}, name)
		}
	})
}
