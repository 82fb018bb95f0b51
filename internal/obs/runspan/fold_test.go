package runspan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/wire"
)

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func record() *wire.RunRecord {
	return &wire.RunRecord{
		RunID:       "r1",
		WorkflowID:  "wf",
		Owner:       wire.Owner{Tenant: "acme"},
		CreatedAt:   wire.FormatTime(began),
		Tags:        []string{"a", "b"},
		ScopeID:     "s",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
}

// feed applies events one second apart and returns all ended spans.
func feed(f *runspan.Fold, docs ...string) []*runspan.Span {
	var ended []*runspan.Span
	for i, d := range docs {
		var e struct {
			Type        wire.EventType  `json:"type"`
			Payload     json.RawMessage `json:"payload"`
			NodeID      string          `json:"nodeId"`
			CausationID string          `json:"causationId"`
		}
		if err := json.Unmarshal([]byte(d), &e); err != nil {
			panic(fmt.Sprintf("%s: %v", d, err))
		}
		ended = append(ended, f.Apply(wire.Event{
			Type: e.Type, Payload: e.Payload, NodeID: e.NodeID, CausationID: e.CausationID, Sequence: i,
			Timestamp: wire.FormatTime(began.Add(time.Duration(i+1) * time.Second)),
		})...)
	}
	return ended
}

// retriedRun fails once and succeeds on the second attempt.
var retriedRun = []string{
	`{"type":"run.started","payload":{"workflowId":"wf"}}`,
	`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}}`,
	`{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m","inputTokens":10,"outputTokens":5,"costEstimateUsd":0.5,"currency":"USD"}}`,
	`{"type":"envelope.retry.attempted","nodeId":"n","payload":{"nodeId":"n","attempt":2,"reason":"schema-violation","previousError":"no"}}`,
	`{"type":"node.retried","nodeId":"n","payload":{"nodeId":"n","attempt":1,"lastError":{"code":"provider_unavailable","message":"words"}}}`,
	`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":1}}`,
	`{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m","inputTokens":10,"outputTokens":5,"costEstimateUsd":0.25,"currency":"USD"}}`,
	`{"type":"artifact.created","nodeId":"n","causationId":"c1","payload":{"artifactId":"e1","artifactType":"vendor.x.y","payload":{"text":"content"}}}`,
	`{"type":"node.completed","nodeId":"n","payload":{"nodeId":"n","outputs":{"output":"content"}}}`,
	`{"type":"run.completed","payload":{}}`,
}

func byName(t *testing.T, spans []*runspan.Span) map[string][]*runspan.Span {
	t.Helper()
	out := map[string][]*runspan.Span{}
	for _, s := range spans {
		out[s.Name] = append(out[s.Name], s)
	}
	return out
}

func TestFold_BuildsATreeUnderTheRequest(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f, retriedRun...)
	spans := byName(t, f.All())

	root := spans["openwop.run"][0]
	require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", root.Trace.String())
	require.Equal(t, "00f067aa0ba902b7", root.Parent.String())
	require.Equal(t, runspan.RunSpan("r1"), root.ID)
	require.Equal(t, began, root.Start)
	require.Equal(t, began.Add(10*time.Second), root.End)
	require.Equal(t, runspan.OK, root.Code)
	require.Equal(t, []string{"a", "b"}, root.Attributes["openwop.run.tags"])

	n := spans["openwop.node.core.ai.callPrompt"][0]
	require.Equal(t, root.ID, n.Parent)
	require.Equal(t, int64(1), n.Attributes["openwop.node_attempt"])
	tries := spans["openwop.node.core.ai.callPrompt.attempt"]
	require.Len(t, tries, 2)
	require.Equal(t, runspan.AttemptSpan("r1", "n", 0), tries[0].ID)
	require.Equal(t, n.ID, tries[0].Parent)
	require.Equal(t, runspan.Error, tries[0].Code)
	require.Equal(t, "provider_unavailable", tries[0].Message)
	require.Equal(t, runspan.OK, tries[1].Code)
	require.Equal(t, "envelope.retry.attempted", tries[0].Events[0].Name)
	require.Equal(t, map[string]any{
		"openwop.envelope.retry.attempt": int64(2),
		"openwop.envelope.retry.reason":  "schema-violation",
	}, tries[0].Events[0].Attributes)

	calls := spans["openwop.activity.mock"]
	require.Len(t, calls, 2)
	require.Equal(t, tries[0].ID, calls[0].Parent)
	require.Equal(t, tries[1].ID, calls[1].Parent)
	require.NotEqual(t, calls[0].ID, calls[1].ID)
	require.Equal(t, runspan.KindClient, calls[0].Kind)
	require.Equal(t, began.Add(2*time.Second), calls[0].Start)

	accepted := spans["openwop.envelope.accept"][0]
	require.Equal(t, tries[1].ID, accepted.Parent)
	require.Equal(t, "vendor.x.y", accepted.Attributes["openwop.envelope_kind"])
}

func TestFold_SumsCostsOfModelCalls(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f, retriedRun...)
	want := map[string]any{
		"openwop.cost.tokens.input":  int64(20),
		"openwop.cost.tokens.output": int64(10),
		"openwop.cost.tokens.total":  int64(30),
		"openwop.cost.usd":           0.75,
		"openwop.cost.currency":      "USD",
		"openwop.cost.estimated":     true,
		"openwop.cost.provider":      "mock",
	}
	for name, v := range byName(t, f.All())["openwop.run"][0].Attributes {
		if w, ok := want[name]; ok {
			require.Equal(t, w, v, name)
			delete(want, name)
			continue
		}
		require.NotContains(t, name, "cost")
	}
	require.Empty(t, want)
}

// OpenWOP host contract §10.2: spans report listed costs of nodes from any event.
func TestFold_AddsListedCostsOfNodesOnly(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(
		f, `{"type":"run.started","payload":{"workflowId":"wf"}}`, `{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"t","attempt":0}}`,
		`{"type":"log.appended","nodeId":"n","payload":{"fields":{"openwop.cost.usd":0.5,"openwop.cost.tokens.input":7,"openwop.cost.evil":"x","other":"y"}}}`,
		`{"type":"log.appended","nodeId":"n","causationId":"c","payload":{"fields":{"openwop.cost.usd":9}}}`,
	)
	for _, s := range f.All() {
		require.InDelta(t, 0.5, s.Attributes["openwop.cost.usd"], 0, s.Name)
		require.Equal(t, int64(7), s.Attributes["openwop.cost.tokens.input"], s.Name)
		require.NotContains(t, s.Attributes, "openwop.cost.evil")
		require.NotContains(t, s.Attributes, "other")
	}
}

func TestFold_EndsEachSpanOnce(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	ended := feed(f, retriedRun...)
	seen := map[runspan.SpanID]bool{}
	for _, s := range ended {
		require.True(t, s.Ended())
		require.False(t, seen[s.ID], "%s twice", s.Name)
		seen[s.ID] = true
	}
	require.Len(t, seen, 6, "the run, the node, two attempts, two calls")
	require.NotContains(t, byName(t, ended), "openwop.envelope.accept", "the acceptor exports that span")
}

func TestFold_ContinuesAfterAPrefix(t *testing.T) {
	t.Parallel()
	for cut := range len(retriedRun) + 1 {
		whole, parts := runspan.New(record(), runspan.Options{}), runspan.New(record(), runspan.Options{})
		all := feed(whole, retriedRun...)
		first := feed(parts, retriedRun[:cut]...)
		require.GreaterOrEqual(t, len(all), len(first))
		for i, s := range first {
			require.Equal(t, all[i].ID, s.ID)
		}
		for _, s := range parts.All() {
			require.NotEmpty(t, s.Name)
			require.False(t, s.Start.IsZero())
		}
	}
}

func TestFold_EndOfTheRunEndsOpenSpans(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f, append(retriedRun[:2:2], `{"type":"run.failed","payload":{"error":{"code":"run_timeout","message":"words"}}}`)...)
	for _, s := range f.All() {
		require.True(t, s.Ended(), s.Name)
		require.Equal(t, "run_timeout", s.Message, s.Name)
	}
}

func TestFold_HoldsNoContent(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f, append(retriedRun[:8:8],
		`{"type":"envelope.refusal","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m","refusalText":"words","safetyCategory":"harm"}}`,
		`{"type":"envelope.recovery.applied","nodeId":"n","payload":{"nodeId":"n","path":"custom","byteOffset":3}}`,
		`{"type":"cap.breached","nodeId":"n","payload":{"kind":"schema","limit":2,"observed":3,"nodeId":"n"}}`,
		`{"type":"node.failed","nodeId":"n","payload":{"nodeId":"n","error":{"code":"envelope_refusal","message":"words"}}}`)...)
	b, err := json.Marshal(f.All())
	require.NoError(t, err)
	for _, never := range []string{"words", "content\"", "refusalText"} {
		require.NotContains(t, string(b), never)
	}
	require.Contains(t, string(b), "openwop.envelope.refusal.safety_category")
	require.Contains(t, string(b), "openwop.cap_observed")
}

func TestFold_CutsTextAtCharacterBoundaries(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("a", 127) + "é", strings.Repeat("é", 500), "a\\ud800"} {
		f := runspan.New(record(), runspan.Options{})
		feed(f, append(retriedRun[:2:2], `{"type":"envelope.truncated","nodeId":"n","payload":{"nodeId":"n","stopReason":"`+text+`"}}`)...)
		got, ok := byName(t, f.All())["openwop.node.core.ai.callPrompt.attempt"][0].Events[0].Attributes["openwop.envelope.truncated.stop_reason"].(string)
		require.True(t, ok)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), 128)
	}
}

func FuzzFold(f *testing.F) {
	for _, d := range retriedRun {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var e wire.Event
		if json.Unmarshal(doc, &e) != nil {
			return
		}
		fold := runspan.New(record(), runspan.Options{})
		feed(fold, retriedRun[:3]...)
		fold.Apply(e)
		for _, s := range fold.All() {
			require.NotZero(t, s.ID)
		}
	})
}

// The call after a refused form of the schema has the form that was sent, and no other call has.
func TestFold_NamesTheFormOfASchema(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f,
		`{"type":"run.started","payload":{"workflowId":"wf"}}`,
		`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}}`,
		`{"type":"log.appended","nodeId":"n","payload":{"level":"warn","message":"words","nodeId":"n","fields":{"reason":"other","schemaForm":"no"}}}`,
		`{"type":"log.appended","nodeId":"n","payload":{"level":"warn","message":"words","nodeId":"n","fields":{"reason":"schema_form","schemaForm":"tool"}}}`,
		`{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m"}}`,
		`{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m"}}`,
		`{"type":"run.completed","payload":{}}`,
	)
	calls := byName(t, f.All())["openwop.activity.mock"]
	require.Len(t, calls, 2)
	require.Equal(t, "tool", calls[0].Attributes[runspan.SchemaForm])
	require.NotContains(t, calls[1].Attributes, runspan.SchemaForm)
}

// A call begins at the event before its answer: thoughts, chunks and notes are part of it.
func TestFold_ACallBeginsBeforeItsThoughts(t *testing.T) {
	t.Parallel()
	f := runspan.New(record(), runspan.Options{})
	feed(f,
		`{"type":"run.started","payload":{"workflowId":"wf"}}`,
		`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}}`,
		`{"type":"agent.reasoning.delta","nodeId":"n","payload":{"agentId":"node:n","delta":"hm","sequence":0}}`,
		`{"type":"agent.reasoned","nodeId":"n","payload":{"agentId":"node:n","reasoning":"hm"}}`,
		`{"type":"output.chunk","nodeId":"n","payload":{"nodeId":"n","chunk":"a","isLast":true}}`,
		`{"type":"log.appended","nodeId":"n","payload":{"nodeId":"n","fields":{"reason":"schema_form","schemaForm":"tool"}}}`,
		`{"type":"log.appended","nodeId":"n","payload":{"nodeId":"n","fields":{"reason":"model_usage","reasoningTokens":3}}}`,
		`{"type":"provider.usage","nodeId":"n","payload":{"nodeId":"n","provider":"mock","model":"m"}}`,
		`{"type":"run.completed","payload":{}}`,
	)
	call := byName(t, f.All())["openwop.activity.mock"][0]
	require.Equal(t, began.Add(2*time.Second), call.Start)
	require.Equal(t, began.Add(8*time.Second), call.End)
}

// OpenWOP envelope contract §4.1: the span of an accept says that the envelope's version is below the
// advertised one, whatever event records the envelope.
func TestFold_SaysThatAVersionDrifted(t *testing.T) {
	t.Parallel()
	const drift = `"schemaVersionDrift":{"sent":1,"advertised":2}`
	for name, event := range map[string]string{
		"artifact": `{"type":"artifact.created","nodeId":"n","causationId":"c","payload":{"artifactId":"e","artifactType":"k","version":"2",` + drift + `}}`,
		"log":      `{"type":"log.appended","nodeId":"n","causationId":"c","payload":{"level":"error","message":"m","fields":{"envelopeType":"error","envelopeId":"e",` + drift + `}}}`,
		"question": `{"type":"clarification.requested","nodeId":"n","causationId":"c","payload":{"envelope":{"envelopeType":"clarification.request","envelopeId":"e",` + drift + `}}}`,
	} {
		f := runspan.New(record(), runspan.Options{})
		feed(f, `{"type":"run.started","payload":{"workflowId":"wf"}}`,
			`{"type":"node.started","nodeId":"n","payload":{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}}`, event)
		a := byName(t, f.All())["openwop.envelope.accept"][0].Attributes
		require.Equal(t, true, a["envelope_schema_version_drift"], name)
		require.Equal(t, int64(1), a["envelope_schema_version"], name)
		require.Equal(t, int64(2), a["envelope_schema_version_floor"], name)
	}
}
