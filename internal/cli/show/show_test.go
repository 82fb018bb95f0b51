package show_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/show"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

func TestDetail_SummarizesEvents(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		typ     wire.EventType
		payload string
		want    string
	}{
		{"run.started", `{"workflowId":"w","inputs":{"b":1,"a":2}}`, "workflow w, inputs a, b"},
		{"run.failed", `{"error":{"code":"boom","message":"it broke"}}`, "boom: it broke"},
		{"run.cancelled", `{"reason":"enough","cancelledBy":"key_1"}`, "enough by key_1"},
		{"node.started", `{"typeId":"core.noop","attempt":0}`, "core.noop"},
		{"node.started", `{"typeId":"core.noop","attempt":2}`, "core.noop, attempt 3"},
		{"node.failed", `{"error":{"code":"boom","message":"m"},"attempts":3}`, "boom: m (after 3 attempts)"},
		{
			"node.retried", `{"attempt":1,"delayMs":10,"lastError":{"code":"boom","message":"m"}}`,
			"attempt 2 follows in 10 ms, after boom: m",
		},
		{
			"provider.usage",
			`{"provider":"p","model":"m","inputTokens":10,"outputTokens":2,"costEstimateUsd":0.0001}`,
			"p/m, 10 tokens in, 2 out, 0.0001 USD (estimate)",
		},
		{"provider.usage", `{"provider":"p","model":"m","inputTokens":10,"outputTokens":2}`, "p/m, 10 tokens in, 2 out"},
		{
			"envelope.truncated", `{"provider":"p","model":"m","stopReason":"length","outputTokenCount":50}`,
			"p/m was cut off after 50 tokens by length",
		},
		{"envelope.truncated", `{"provider":"p","model":"m","stopReason":"length"}`, "p/m was cut off by length"},
		{"envelope.refusal", `{"provider":"p","model":"m"}`, "p/m refused: text withheld by policy"},
		{
			"envelope.retry.attempted", `{"attempt":2,"reason":"schema-violation","previousError":"x"}`,
			"attempt 2, schema-violation: x",
		},
		{
			"model.capability.substituted",
			`{"originalProvider":"a","originalModel":"b","fallbackProvider":"c","fallbackModel":"d","missingCapabilities":["x"]}`,
			"a/b lacks x, substituted by c/d",
		},
		{"cap.breached", `{"kind":"envelopes","limit":5,"observed":6}`, "envelopes: 6 of at most 5"},
		{
			"interrupt.requested",
			`{"kind":"approval","data":{"title":"Pay?","actions":["accept","reject"]}}`,
			"Pay? (accept, reject)",
		},
		{
			"interrupt.requested",
			`{"kind":"clarification","data":{"questions":[{"id":"q","question":"Which?"},{"id":"r","question":"Why?"}]}}`,
			"Which? (and 1 more)",
		},
		{"interrupt.requested", `{"kind":"external-event","data":{"eventType":"paid"}}`, "event paid"},
		{
			"interrupt.resolved",
			`{"kind":"approval","resumeValue":{"action":"accept"},"resolvedBy":"key_1"}`,
			"approval accept by key_1",
		},
		{"approval.received", `{"action":"reject","decidedBy":"key_1","feedback":"no"}`, "reject by key_1 - no"},
		{"artifact.created", `{"artifactType":"media.image","artifactId":"env_1"}`, "media.image env_1"},
		{"artifact.created", `{"artifactType":"vendor.x.y","artifactId":"env_1","label":"First draft"}`, "vendor.x.y env_1 First draft"},
		{"variable.changed", `{"name":"n","next":9007199254740993}`, "n = 9007199254740993"},
		{"output.chunk", `{"chunk":"a\nb\u001b[2J"}`, `"a\nb\x1b[2J"`},
		{"log.appended", `{"level":"warn","message":"odd"}`, "warn: odd"},
		{"run.resumed", `{}`, ""},
		{"acme.invoice.paid", `{"amount": 3}`, `{"amount":3}`},
		{"run.failed", `"not an object"`, ""},
		{"log.appended", `{"level":"info","message":"\u001b[31mred\u202e\nline"}`, `info: \u001b[31mred\u202e line`},
	} {
		require.Equal(t, tc.want, show.Detail(wire.Event{
			Type:    tc.typ,
			Payload: json.RawMessage(tc.payload),
		}), "%s %s", tc.typ, tc.payload)
	}
	untrusted := wire.Event{
		Type:         "log.appended",
		Payload:      json.RawMessage(`{"level":"info","message":"m"}`),
		ContentTrust: wire.Untrusted,
	}
	require.Equal(t, "info: m (untrusted)", show.Detail(untrusted))
}

// Every event of the golden corpus has a summary of one line without control characters.
func TestDetail_OfTheCorpusIsALine(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../test/golden/corpus/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	silent := map[wire.EventType]bool{
		"run.completed":  true,
		"run.resumed":    true,
		"node.completed": true,
		"node.resumed":   true,
		"run.cancelled":  true,
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var log struct{ Events []wire.Event }
		require.NoError(t, json.Unmarshal(b, &log))
		for _, e := range log.Events {
			text := show.Detail(e)
			require.NotContains(t, text, "\n", file)
			require.False(t, strings.ContainsFunc(text, unicode.IsControl), file)
			require.True(t, text != "" || silent[e.Type], "%s: no summary of %s %s", file, e.Type, e.Payload)
		}
	}
}

func FuzzDetail(f *testing.F) {
	f.Add("node.failed", []byte(`{"error":{"code":"x","message":"\u001b"}}`))
	f.Add("interrupt.requested", []byte(`{"kind":"clarification","data":{"questions":[1]}}`))
	f.Fuzz(func(t *testing.T, typ string, payload []byte) {
		text := show.Detail(wire.Event{Type: wire.EventType(typ), Payload: payload})
		require.False(t, strings.ContainsFunc(text, unicode.IsControl), text)
	})
}

func TestWaitReason(t *testing.T) {
	t.Parallel()
	ask := &runstate.OpenInterrupt{
		NodeID:  "gate",
		Kind:    interrupt.Approval,
		Payload: interrupt.Request{Data: json.RawMessage(`{"title":"Pay?"}`)},
	}
	for want, r := range map[string]runstate.Snapshot{
		"waits for an answer at gate (approval): Pay?":           {Status: wire.StatusWaitingApproval, Interrupt: ask},
		"waits for an answer at gate":                            {Status: wire.StatusWaitingApproval, CurrentNodeID: "gate"},
		"paused: waits to be resumed":                            {Status: wire.StatusPaused},
		"queued: waits for a dispatcher, a free slot or a limit": {Status: wire.StatusPending},
		"": {Status: wire.StatusCompleted},
	} {
		require.Equal(t, want, show.WaitReason(r))
	}
}

// C6: a form is summarized by its heading, not by its kind.
func TestQuestion_OfAFormIsItsHeading(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"customKind":"ui.a2ui-surface","payload":{"catalogVersion":"0.9.1","surface":{"components":[{"component":"heading","text":"A refund","level":2}]}}}`:                     "a form: A refund",
		`{"customKind":"ui.a2ui-surface","payload":{"catalogVersion":"0.9.1","surface":{"components":[{"component":"field.checkbox","id":"a","label":"Twice","default":false}]}}}`: "a form",
		`{"customKind":"ui.a2ui-surface"}`: "a form",
		`{"customKind":"sign"}`:            "custom sign",
	} {
		require.Equal(t, want, show.Question("custom", json.RawMessage(data)))
	}
}

func TestDuration_HasTwoUnitsAtMost(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                           "0ms",
		999 * time.Millisecond:      "999ms",
		1500 * time.Millisecond:     "1.5s",
		42 * time.Second:            "42s",
		61 * time.Second:            "1m1s",
		3*time.Hour + 5*time.Minute: "3h5m",
		72 * time.Hour:              "3d",
		-time.Second:                "0ms",
	} {
		require.Equal(t, want, show.Duration(d))
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.Equal(t, "5.0s", show.Took("2026-01-02T03:04:00Z", "", now))
	require.Equal(t, "1.0s", show.Took("2026-01-02T03:04:00Z", "2026-01-02T03:04:01Z", now))
	require.Empty(t, show.Took("", "", now), "an unknown time is not 0")
}

func TestCost_DistinguishesUnknownFromZero(t *testing.T) {
	t.Parallel()
	none := 0.0
	require.Equal(t, "p/m, 5 tokens in, 2 out, cost unknown", show.Cost(&runstate.Metrics{Cost: runstate.CostRollup{
		Provider: "p",
		Model:    "m",
		Tokens:   runstate.CostTokens{Input: 5, Output: 2},
	}}))
	require.Contains(t, show.Cost(&runstate.Metrics{Cost: runstate.CostRollup{USD: &none}}), "0 USD (estimate)")
}
