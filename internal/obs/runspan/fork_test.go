package runspan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/wire"
)

// forked returns a fork of another run.
func forked(mode wire.ForkMode, from int) *wire.RunRecord {
	r := record()
	r.Fork = &wire.Fork{
		SourceRunID: "r0",
		Mode:        mode,
		FromSeq:     from,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	return r
}

// OpenWOP host contract §7.2: the span of a fork links to that of its source, with mode and starting
// point.
func TestFork_LinksTheSpanOfItsSource(t *testing.T) {
	t.Parallel()
	for _, mode := range []wire.ForkMode{wire.ForkReplay, wire.ForkBranch} {
		f := runspan.New(forked(mode, 2), runspan.Options{})
		feed(f, retriedRun...)
		root := byName(t, f.All())["openwop.run"][0]
		trace, _ := runspan.TraceOf("r0", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		require.Equal(t, []runspan.Link{{Trace: trace, ID: runspan.RunSpan("r0")}}, root.Links)
		require.Equal(t, "r0", root.Attributes["openwop.replay.source_run_id"])
		require.Equal(t, int64(2), root.Attributes["openwop.replay.from_seq"])
		require.Equal(t, string(mode), root.Attributes["openwop.replay.mode"])
		require.NotContains(t, root.Attributes, "openwop.replay.diverged")
	}
	f := runspan.New(record(), runspan.Options{})
	feed(f, retriedRun...)
	require.Empty(t, byName(t, f.All())["openwop.run"][0].Links, "a run that is not a fork has no link")
}

// OpenWOP host contract §7.2: a divergence is recorded on the span, but not one of the source,
// whose history the fork has copied.
func TestFork_RecordsADivergence(t *testing.T) {
	t.Parallel()
	const diverged = `{"type":"replay.diverged","payload":{"sourceRunId":"r0","atSequence":1}}`
	for from, want := range map[int]any{0: true, 1: true, 2: nil} {
		f := runspan.New(forked(wire.ForkReplay, from), runspan.Options{})
		feed(f, retriedRun[0], diverged, retriedRun[9])
		require.Equal(t, want, byName(t, f.All())["openwop.run"][0].Attributes["openwop.replay.diverged"], "from %d", from)
	}
}
