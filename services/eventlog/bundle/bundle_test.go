package bundle_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/bundle"
)

// canary is a text from the run's content.
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
		RunID:        "r1",
		WorkflowID:   "wf",
		Owner:        wire.Owner{Tenant: "acme"},
		CreatedAt:    wire.FormatTime(at),
		Inputs:       map[string]json.RawMessage{"mail": json.RawMessage(quoted)},
		Metadata:     json.RawMessage(`{"m":` + quoted + `}`),
		Configurable: json.RawMessage(`{"c":` + quoted + `}`),
		Traceparent:  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	var events []wire.Event
	for i, d := range docs {
		typ, payload, _ := strings.Cut(d, " ")
		events = append(events, wire.Draft{
			Type: wire.EventType(typ), Payload: []byte(payload), NodeID: "n", CausationID: "c1",
		}.Place("r1", i, at.Add(time.Duration(i)*time.Second)))
	}
	return bundle.Input{
		State:  runstate.Fold(rec, events),
		Events: events,
		Host:   bundle.Host{Name: "waybill", Version: "1"},
		Now:    at,
	}
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

func build(t *testing.T, in bundle.Input) (parsed read, document string) {
	t.Helper()
	b, err := bundle.Build(in)
	require.NoError(t, err)
	var r read
	require.NoError(t, json.Unmarshal(b, &r))
	return r, string(b)
}

func TestBuild_ShowsTheCourseAndNoContent(t *testing.T) {
	t.Parallel()
	in := input(`run.completed {"outputs":{"o":"` + canary + `"}}`)
	r, text := build(t, in)
	require.NotContains(t, text, canary)
	require.NotContains(t, text, "AAAA", "assets are listed by reference")
	require.Contains(t, text, `"url":"https://h"`)
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
	require.Equal(t, len(in.Events), r.Metrics.EventCount, "of the run, not of the bundle")
	require.JSONEq(t, `"run.completed"`, string(r.Events[2]["type"]))
	require.JSONEq(t, `1`, string(r.Events[1]["sequence"]))

	in.MaxEvents = 1
	r, _ = build(t, in)
	require.Len(t, r.Events, 1)
	in.MaxEvents = len(in.Events)
	r, _ = build(t, in)
	require.False(t, r.Truncated)
}

// many are the events of a run that went on for long.
func many(n int, doc string) []string {
	out := make([]string, 0, n+1)
	for i := range n {
		out = append(out, strings.ReplaceAll(doc, "#", fmt.Sprint(i)))
	}
	return append(out, `run.completed {}`)
}

func within(t *testing.T, in bundle.Input, limit int) read {
	t.Helper()
	r, text := build(t, in)
	require.LessOrEqual(t, len(text), limit)
	require.True(t, r.Truncated)
	require.Equal(t, bundle.TruncatedToSize, r.TruncatedReason)
	require.Equal(t, len(in.Events), r.Metrics.EventCount)
	require.JSONEq(t, `"run.completed"`, string(r.Events[len(r.Events)-1]["type"]))
	for i, e := range r.Events[:len(r.Events)-1] {
		require.JSONEq(t, fmt.Sprint(i), string(e["sequence"]), "cut from the end alone")
	}
	return r
}

func TestBuild_StaysBelowTheSizeCap(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	in := input(many(4000, `envelope.recovery.applied {"nodeId":"n","path":"`+long+`"}`)...)
	r := within(t, in, bundle.MaxBytes)
	require.Greater(t, len(r.Events), 2000, "it is filled")
	require.Equal(t, "openwop.run", r.Spans[0].Name)

	in.MaxBytes = 100_000
	r = within(t, in, 100_000)
	require.Greater(t, len(r.Events), 20)
	in.MaxBytes = 1 << 40
	within(t, in, bundle.MaxBytes)
}

// The bundle for an archive has all events, or says that it has not.
func TestBuild_IsWholeForAnArchive(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3000)
	in := input(many(2900, `envelope.recovery.applied {"nodeId":"n","path":"`+long+`"}`)...)
	in.Whole, in.MaxBytes = true, 1000
	r, text := build(t, in)
	require.Greater(t, len(text), bundle.MaxBytes)
	require.Len(t, r.Events, len(in.Events))
	require.False(t, r.Truncated)

	in = input(many(19_000, `envelope.recovery.applied {"nodeId":"n","path":"`+long+`"}`)...)
	in.Whole = true
	r = within(t, in, bundle.WholeBytes)
	require.Less(t, len(r.Events), len(in.Events))
	require.True(t, r.Truncated)
}

// Spans and snapshot are part of the bundle, and of what its size is.
func TestBuild_CountsAllThatIsInIt(t *testing.T) {
	t.Parallel()
	spans := input(many(2000, `artifact.created {"artifactId":"e#","artifactType":"vendor.x.y","nodeId":"n"}`)...)
	for i := range spans.Events {
		spans.Events[i].CausationID = fmt.Sprint("cause-", i) // each accept is a span
	}
	spans.MaxBytes = 500_000
	r := within(t, spans, 500_000)
	require.Greater(t, len(r.Spans), 100)
	require.Less(t, len(r.Spans), len(r.Events), "spans of events that were cut are cut, too")
	require.Greater(t, len(r.Events), 300)

	nodes := input(many(2000, `node.started {"nodeId":"node-#","typeId":"core.noop","attempt":0}`)...)
	nodes.MaxBytes = 300_000
	r = within(t, nodes, 300_000)
	require.JSONEq(t, `{}`, string(r.Run["nodeStates"]), "they would leave no room for events")
	require.Greater(t, len(r.Events), 200)
	require.Contains(t, string(r.Run["status"]), "completed")

	tiny := input(`run.completed {}`)
	tiny.MaxBytes = 100
	_, err := bundle.Build(tiny)
	require.ErrorContains(t, err, "without any event but the last", "better none than one that is too large")
}

func TestBuild_CutsTextsThatTakeTheRoomOfTheRest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100_000)
	r, text := build(t, input(
		`node.failed {"nodeId":"n","error":{"code":"x_y","message":"no `+long+`"}}`,
		`envelope.recovery.applied {"nodeId":"n","path":"`+long+`"}`,
		`envelope.recovery.applied {"nodeId":"n","path":["`+long+`"]}`,
		`run.failed {"error":{"code":"x_y","message":"no `+long+`"}}`))
	require.False(t, r.Truncated)
	require.Less(t, len(text), 60_000)
	require.Contains(t, text, "é… (cut)")
	require.Contains(t, text, `"message":"no éé`)
}

func TestBuild_KeepsATagUnlessItRepeatsAnInput(t *testing.T) {
	t.Parallel()
	in := input(`run.completed {}`)
	in.State.Record.Tags = []string{"team-a", "about " + canary}
	_, text := build(t, in)
	require.NotContains(t, text, canary)
	require.Equal(t, 2, strings.Count(text, `["team-a","(omitted: it repeats an input)"]`), "in the snapshot and in the span")
	require.Equal(t, "about "+canary, in.State.Record.Tags[1], "the run itself is left as it is")
}

func TestTrim_ChangesNothingOfABundle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 10_000)
	in := input(
		`cap.breached {"nodeId":"n","kind":"envelopes","limit":5,"observed":6}`,
		`envelope.recovery.applied {"nodeId":"n","path":"`+long+`"}`,
		`artifact.created {"artifactId":"e9","artifactType":"media.image","nodeId":"n","payload":{"url":"https://h/a?b","bytes":77}}`,
		`node.failed {"nodeId":"n","error":{"code":"x_y","message":"no `+long+`","details":{"d":1}}}`,
		`run.failed {"error":{"code":"x_y","message":"`+canary+`"}}`)
	want, err := bundle.Build(in)
	require.NoError(t, err)
	trimmed := in
	trimmed.Events = bundle.NewTrimmer(in.State).Trim(slices.Clone(in.Events))
	for _, e := range trimmed.Events {
		require.NotContains(t, string(e.Payload), canary)
	}
	got, err := bundle.Build(trimmed)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// A model's asset address and media type are model output and may repeat the run's input.
func TestBuild_OmitsModelTextOfAnAsset(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"url":"https://cdn.example/` + canary + `.png","bytes":77,"mimeType":"image/png"}`,
		`{"url":"https://` + canary + `/a.png","bytes":77,"mimeType":"image/png"}`,
		`{"url":"https://cdn.example/v1/assets/` + canary + `","bytes":77}`,
		`{"url":"https://cdn.example/a","bytes":77,"mimeType":"` + canary + `"}`,
		`{"url":"https://cdn.example/a","bytes":77,"mimeType":"image/` + canary + `"}`,
	} {
		_, text := build(t, input(`artifact.created {"artifactId":"e9","artifactType":"media.image","nodeId":"n","payload":`+payload+`}`))
		require.Contains(t, text, `"bytes":77`)
		require.NotContains(t, text, canary, payload)
	}
	_, text := build(t, input(`artifact.created {"artifactId":"e9","artifactType":"media.image","nodeId":"n","payload":{"bytes":77,"mimeType":"image/svg+xml"}}`))
	require.Contains(t, text, `"mimeType":"image/svg+xml"`)
}

// OpenWOP envelope contract §17: a bundle lists assets by reference. Bundles are shared, so none of
// the addresses may give access.
func TestBuild_NamesAssetsAndOpensNone(t *testing.T) {
	t.Parallel()
	mac := strings.Repeat("s", 42) + "A"
	token := "eyJrIjoxLCJ0IjoiYWNtZSJ9." + mac
	for url, want := range map[string]string{
		"https://h/v1/assets/" + token:                       "https://h/v1/assets/eyJrIjoxLCJ0IjoiYWNtZSJ9",
		"https://h:8080/v1/host/sample/assets/" + token:      "https://h:8080/v1/host/sample/assets/eyJrIjoxLCJ0IjoiYWNtZSJ9",
		"https://bucket.example/a%20b.png?X-Signature=abc#f": "https://bucket.example",
		"https://user:password@h/a":                          "https://h",
		"http://h":                                           "http://h",
		"data:image/png;base64,AAAA":                         "",
		"ftp://h/a":                                          "",
		"/v1/assets/" + token:                                "",
		"::":                                                 "",
	} {
		_, text := build(t, input(`artifact.created {"artifactId":"e9","artifactType":"media.image","nodeId":"n","payload":{"url":"`+url+`","bytes":77}}`))
		require.Contains(t, text, `"bytes":77`)
		require.NotContains(t, text, mac)
		require.NotContains(t, text, "X-Signature")
		require.NotContains(t, text, "password")
		if want == "" {
			require.Contains(t, text, `"payload":{"bytes":77}`, url)
			continue
		}
		require.Contains(t, text, `"payload":{"bytes":77,"url":"`+want+`"}`, url)
	}
	_, text := build(t, input(
		`node.failed {"nodeId":"n","error":{"code":"x_y","message":"cannot read https://h/v1/assets/`+token+`, gave up"}}`,
		`run.failed {"error":{"code":"x_y","message":"`+token+`"}}`))
	require.NotContains(t, text, mac)
	require.Contains(t, text, "eyJrIjoxLCJ0IjoiYWNtZSJ9, gave up")
}

// What a run has cost is part of its course; nothing else of a log entry's fields is
// (OpenWOP host contract §10.2).
func TestTrim_KeepsTheCostAttributesOfALogEntry(t *testing.T) {
	t.Parallel()
	e := wire.Draft{Type: wire.EventLogAppended, NodeID: "n", Payload: []byte(
		`{"level":"info","message":"x","nodeId":"n","fields":{"openwop.cost.usd":1,"openwop.cost.evil":"` + canary + `","other":"` + canary + `"}}`)}.Place("r", 0, time.Now())
	trimmed := bundle.NewTrimmer(runstate.New(&wire.RunRecord{})).Trim([]wire.Event{e})
	require.Contains(t, string(trimmed[0].Payload), `"fields":{"openwop.cost.usd":1}`)
	require.NotContains(t, string(trimmed[0].Payload), canary)
}

// What this host notes about a model call is part of the run's course; entries of others that look alike
// are content.
func TestTrim_KeepsTheNotesAboutAModelCall(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		`{"reason":"model_usage","reasoningTokens":7,"other":"` + canary + `"}`:     `{"reason":"model_usage","reasoningTokens":7}`,
		`{"reason":"model_usage","reasoningTokens":"` + canary + `"}`:               `{}`,
		`{"reason":"schema_form","schemaForm":"tool","refused":["` + canary + `"]}`: `{"reason":"schema_form","schemaForm":"tool"}`,
		`{"reason":"schema_form","schemaForm":"` + canary + `"}`:                    `{}`,
		`{"reason":"` + canary + `","reasoningTokens":7}`:                           `{}`,
	} {
		e := wire.Draft{Type: wire.EventLogAppended, NodeID: "n", Payload: []byte(
			`{"level":"info","message":"x","nodeId":"n","fields":` + fields + `}`)}.Place("r", 0, time.Now())
		trimmed := bundle.NewTrimmer(runstate.New(&wire.RunRecord{})).Trim([]wire.Event{e})
		require.Contains(t, string(trimmed[0].Payload), `"fields":`+want)
		require.NotContains(t, string(trimmed[0].Payload), canary)
	}
}

// The view is folded from the events of the bundle, so it has neither content nor more events.
func TestBuild_HasTheViewOfItsEvents(t *testing.T) {
	t.Parallel()
	in := input(`run.completed {}`)
	var b struct{ View view.Run }
	_, text := build(t, in)
	require.NoError(t, json.Unmarshal([]byte(text), &b))
	require.Equal(t, len(in.Events)-1, b.View.Sequence)
	require.Equal(t, wire.FormatTime(at), b.View.CreatedAt)
	require.Len(t, b.View.Answers, 1)
	require.Equal(t, "schema-violation", b.View.Answers[0].Calls[1].Because.Reason)
	require.Empty(t, b.View.Answers[0].Calls[1].Because.Detail)
	require.Equal(t, "completed", b.View.Timeline.Run.Status)
	require.Equal(t, 1, b.View.Cost.Total.Calls)

	in.MaxEvents = 3
	_, text = build(t, in)
	require.NoError(t, json.Unmarshal([]byte(text), &b))
	require.Equal(t, 1, b.View.Sequence, "the last event follows a gap")
	require.Equal(t, "running", b.View.Timeline.Run.Status)
}

// The manifest of a bundle lists each asset once, with the event that has its address.
func TestBuild_ListsTheAssetsOfTheRun(t *testing.T) {
	t.Parallel()
	_, text := build(t, input(
		`artifact.created {"artifactId":"e1","artifactType":"media.image","nodeId":"n","payload":{"url":"https://h/v1/assets/abcdefgh.`+strings.Repeat("s", 43)+`","bytes":900000,"mimeType":"image/png"}}`,
		`artifact.created {"artifactId":"e2","artifactType":"media.audio","nodeId":"n","payload":{"base64":"AAAA","bytes":3,"mimeType":"audio/wav"}}`,
		`artifact.created {"artifactId":"e3","artifactType":"vendor.x.y","nodeId":"n","payload":{"bytes":3}}`))
	var doc struct {
		Events []struct{ Sequence int }
		Assets []json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	n := len(doc.Events)
	require.Len(t, doc.Assets, 4, "two are of every run of these tests")
	list, err := json.Marshal(doc.Assets[2:])
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`[
		{"sequence":%d,"nodeId":"n","artifactId":"e1","kind":"media.image","url":"https://h/v1/assets/abcdefgh","bytes":900000,"mimeType":"image/png"},
		{"sequence":%d,"nodeId":"n","artifactId":"e2","kind":"media.audio","inline":true,"bytes":3,"mimeType":"audio/wav"}]`,
		doc.Events[n-3].Sequence, doc.Events[n-2].Sequence), string(list))
}
