package bundle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/bundle"
)

// canary stands for what the run is about.
const canary = "the-lamp-arrived-broken"

var at = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// input is a run that carries the canary wherever a run can carry content.
func input(more ...string) bundle.Input {
	quoted := fmt.Sprintf("%q", canary)
	docs := append([]string{
		`run.started {"workflowId":"wf","inputs":{"mail":` + quoted + `},"metadata":{"m":` + quoted + `}}`,
		`node.started {"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}`,
		`output.chunk {"nodeId":"n","runId":"r1","chunk":` + quoted + `,"isLast":true}`,
		`provider.usage {"nodeId":"n","provider":"mock","model":"m","inputTokens":3,"outputTokens":4}`,
		`envelope.refusal {"nodeId":"n","provider":"mock","model":"m","refusalText":` + quoted + `}`,
		`envelope.retry.attempted {"nodeId":"n","attempt":2,"reason":"schema-violation","previousError":` + quoted + `}`,
		`artifact.created {"artifactId":"e1","artifactType":"vendor.x.y","nodeId":"n","payload":{"t":` + quoted + `}}`,
		`artifact.created {"artifactId":"e2","artifactType":"media.image","nodeId":"n","payload":{"url":"https://h/a","base64":"AAAA","bytes":3,"alt":` + quoted + `}}`,
		`artifact.created {"artifactId":"e4","artifactType":"media.image","nodeId":"n","payload":{"url":"data:image/png;base64,AAAA","bytes":3}}`,
		`log.appended {"level":"error","message":` + quoted + `,"fields":{"envelopeType":"error","envelopeId":"e3","outcome":"accepted","payload":{"message":` + quoted + `}}}`,
		`clarification.requested {"nodeId":"n","questions":[{"id":"q","question":` + quoted + `}],"envelope":{"envelopeType":"clarification.request","payload":` + quoted + `}}`,
		`variable.changed {"name":"v","next":` + quoted + `,"previous":` + quoted + `}`,
		`node.completed {"nodeId":"n","outputs":{"output":` + quoted + `}}`,
	}, more...)
	rec := &wire.RunRecord{
		RunID: "r1", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, CreatedAt: wire.FormatTime(at),
		Inputs: map[string]json.RawMessage{"mail": json.RawMessage(quoted)}, Metadata: json.RawMessage(`{"m":` + quoted + `}`),
		Configurable: json.RawMessage(`{"c":` + quoted + `}`), Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	var events []wire.Event
	for i, d := range docs {
		typ, payload, _ := strings.Cut(d, " ")
		events = append(events, wire.Draft{
			Type: wire.EventType(typ), Payload: []byte(payload), NodeID: "n", CausationID: "c1",
		}.Place("r1", i, at.Add(time.Duration(i)*time.Second)))
	}
	return bundle.Input{State: runstate.Fold(rec, events), Events: events, Host: bundle.Host{Name: "waybill", Version: "1"}, Now: at}
}

type read struct {
	BundleVersion   string
	Run             map[string]json.RawMessage
	Events          []map[string]json.RawMessage
	Spans           []struct{ Name, TraceID string }
	Metrics         struct{ NodeCount, EventCount int }
	RedactionMode   string
	Truncated       bool
	TruncatedReason string
}

func build(t *testing.T, in bundle.Input) (read, string) {
	t.Helper()
	b, err := bundle.Build(in)
	require.NoError(t, err)
	var r read
	require.NoError(t, json.Unmarshal(b, &r))
	return r, string(b)
}

func TestBuild_TellsTheCourseAndNoContent(t *testing.T) {
	t.Parallel()
	in := input(`run.completed {"outputs":{"o":"` + canary + `"}}`)
	r, text := build(t, in)
	require.NotContains(t, text, canary)
	require.NotContains(t, text, "AAAA", "assets are listed by reference")
	require.Contains(t, text, `"url":"https://h/a"`)
	require.Equal(t, "1.0", r.BundleVersion)
	require.Equal(t, "omit", r.RedactionMode)
	require.JSONEq(t, `{}`, string(r.Run["inputs"]))
	require.JSONEq(t, `{}`, string(r.Run["variables"]))
	require.Len(t, r.Events, len(in.Events))
	require.Equal(t, len(in.Events), r.Metrics.EventCount)
	require.Equal(t, 1, r.Metrics.NodeCount)
	require.Contains(t, text, `"outputTokens":4`)
	require.Contains(t, text, `"reason":"schema-violation"`)
	require.Contains(t, text, `"envelopeType":"clarification.request"`)
	for i, e := range r.Events {
		require.JSONEq(t, fmt.Sprint(i), string(e["sequence"]))
	}
}

func TestBuild_HasTheSpansOfTheRequestsTrace(t *testing.T) {
	t.Parallel()
	r, _ := build(t, input(`run.completed {}`))
	var names []string
	for _, s := range r.Spans {
		require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", s.TraceID)
		names = append(names, s.Name)
	}
	require.Contains(t, names, "openwop.run")
	require.Contains(t, names, "openwop.node.core.ai.callPrompt.attempt")
}

func TestBuild_KeepsAnErrorUnlessItRepeatsAnInput(t *testing.T) {
	t.Parallel()
	for message, kept := range map[string]bool{"the model's server said no": true, "cannot sort " + canary: false} {
		_, text := build(t, input(
			`node.failed {"nodeId":"n","error":{"code":"x_y","message":"`+message+`","details":{"d":"`+canary+`"}}}`,
			`run.failed {"error":{"code":"x_y","message":"`+message+`"}}`))
		require.NotContains(t, text, canary)
		require.Contains(t, text, `"code":"x_y"`)
		require.Equal(t, kept, strings.Contains(text, message))
	}
}

func TestBuild_TruncatesFromTheEndAndKeepsTheLastEvent(t *testing.T) {
	t.Parallel()
	in := input(`run.completed {}`)
	in.MaxEvents = 3
	r, _ := build(t, in)
	require.True(t, r.Truncated)
	require.Equal(t, bundle.TruncatedToNumber, r.TruncatedReason)
	require.Len(t, r.Events, 3)
	require.Equal(t, 3, r.Metrics.EventCount)
	require.JSONEq(t, `"run.completed"`, string(r.Events[2]["type"]))
	require.JSONEq(t, `1`, string(r.Events[1]["sequence"]))

	in.MaxEvents = 1
	r, _ = build(t, in)
	require.Len(t, r.Events, 1)
	in.MaxEvents = len(in.Events)
	r, _ = build(t, in)
	require.False(t, r.Truncated)
}

func TestBuild_StaysBelowTheSizeCap(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	more := make([]string, 0, 61)
	for range 60 {
		more = append(more, `envelope.recovery.applied {"nodeId":"n","path":"`+long+`"}`)
	}
	r, text := build(t, input(append(more, `run.completed {}`)...))
	require.LessOrEqual(t, len(text), bundle.MaxBytes)
	require.True(t, r.Truncated)
	require.Equal(t, bundle.TruncatedToSize, r.TruncatedReason)
	require.Equal(t, len(r.Events), r.Metrics.EventCount)
	require.Greater(t, len(r.Events), 20)
	require.JSONEq(t, `"run.completed"`, string(r.Events[len(r.Events)-1]["type"]))
}
