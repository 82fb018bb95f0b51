package runspan_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/obs/runspan"
)

// suspendedRun waits at a gate; tests append how it continues.
var suspendedRun = []string{
	`{"type":"run.started","payload":{"workflowId":"wf"}}`,
	`{"type":"node.started","nodeId":"g","payload":{"nodeId":"g","typeId":"core.approvalGate","attempt":0}}`,
	`{"type":"node.suspended","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","kind":"approval","key":"k"}}`,
	`{"type":"interrupt.requested","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","kind":"approval","key":"k","data":{"title":"words"}}}`,
}

func resumed(ends ...string) []string { return append(suspendedRun[:4:4], ends...) }

// OpenWOP host contract §10.1: `openwop.interrupt`.
func TestInterrupt_IsASpanBelowItsNode(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	ended := feed(f, resumed(
		`{"type":"interrupt.resolved","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","kind":"approval","resumeValue":{"action":"reject","reason":"words"},"resolvedBy":"words"}}`,
		`{"type":"interrupt.requested","nodeId":"g","payload":{"nodeId":"g","interruptId":"i2","kind":"clarification","key":"k","data":{}}}`,
	)...)
	require.Len(t, ended, 1)
	spans := byName(t, f.All())
	node, open := spans["openwop.node.core.approvalGate"][0], spans["openwop.interrupt"]
	require.Len(t, open, 2)
	require.Equal(t, ended[0], open[0])
	require.Equal(t, runspan.InterruptSpan("r1", "i1"), open[0].ID)
	require.Equal(t, began.Add(4*time.Second), open[0].Start)
	require.Equal(t, began.Add(5*time.Second), open[0].End)
	require.Equal(t, runspan.OK, open[0].Code, "any answer counts as success")
	for i, want := range []map[string]any{
		{"openwop.interrupt_id": "i1", "openwop.interrupt_kind": "approval", "openwop.interrupt_count": int64(1)},
		{"openwop.interrupt_id": "i2", "openwop.interrupt_kind": "clarification", "openwop.interrupt_count": int64(2)},
	} {
		want["openwop.run_id"], want["openwop.node_id"] = "r1", "g"
		require.Equal(t, want, open[i].Attributes)
		require.Equal(t, node.ID, open[i].Parent)
		require.Equal(t, node.Trace, open[i].Trace)
	}
	require.False(t, open[1].Ended(), "it waits")
	require.False(t, node.Ended())
	b, err := json.Marshal(f.All())
	require.NoError(t, err)
	require.NotContains(t, string(b), "words", "spans hold no content of questions or answers")
}

func TestInterrupt_EndsWithTheWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end     string
		code    runspan.Code
		message string
	}{
		"no answer": {
			`{"type":"interrupt.resolved","nodeId":"g","payload":{"nodeId":"g","interruptId":"i1","outcome":"rejected","reason":"timeout"}}`,
			runspan.Error, "timeout",
		},
		"its node is cancelled": {
			`{"type":"node.cancelled","nodeId":"g","payload":{"nodeId":"g"}}`, runspan.Error, "cancelled",
		},
		"its run fails": {
			`{"type":"run.failed","payload":{"error":{"code":"run_timeout","message":"words"}}}`,
			runspan.Error, "run_timeout",
		},
	} {
		f := runspan.New(record(), runspan.Options{})
		feed(f, resumed(tc.end, `{"type":"run.cancelled","payload":{}}`)...)
		open := byName(t, f.All())["openwop.interrupt"]
		require.Len(t, open, 1, name)
		require.True(t, open[0].Ended(), name)
		require.Equal(t, tc.code, open[0].Code, name)
		require.Equal(t, tc.message, open[0].Message, name)
	}
}

func TestInterrupt_IgnoresUnreadableEvents(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f, suspendedRun[0], `{"type":"interrupt.requested","payload":7}`, `{"type":"interrupt.resolved","payload":{"interruptId":"ghost"}}`, suspendedRun[3], suspendedRun[3])
	open := byName(t, f.All())["openwop.interrupt"]
	require.Len(t, open, 1, "a repeated event opens no second span")
	require.Equal(t, runspan.RunSpan("r1"), open[0].Parent, "its node has none")
}
