package accept_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
)

const (
	note    = "vendor.acme.note"
	canary  = "sk-canary-0001"
	marker  = "[REDACTED:canary]"
	nodeID  = "ask"
	runID   = "run-1"
	version = 2 // of vendor.acme.note
)

const noteSchema = `{
  "type": "object", "additionalProperties": false, "required": ["text"],
  "properties": {"reasoning": {"type": "string"}, "text": {"type": "string"}, "n": {"type": "number"}, "more": {"type": "object"}}
}`

// redactor replaces the canary, or fails.
type redactor struct {
	err   error
	calls atomic.Int64
	// longest is the total length of the texts of its largest request.
	longest atomic.Int64
	// spelled is another encoding of the canary to replace; empty means none.
	spelled string
}

func (r *redactor) Redact(_ context.Context, _ subject.Run, in accept.Texts) (accept.Texts, int, error) {
	r.calls.Add(1)
	sum := 0
	for _, s := range in.Strings {
		sum += len(s)
	}
	r.longest.Store(max(r.longest.Load(), int64(sum)))
	if r.err != nil {
		return accept.Texts{}, 0, r.err
	}
	var out accept.Texts
	n := 0
	for _, d := range in.Documents {
		n += strings.Count(string(d), canary)
		out.Documents = append(out.Documents, json.RawMessage(strings.ReplaceAll(string(d), canary, marker)))
	}
	for _, s := range in.Strings {
		n += strings.Count(s, canary)
		s = strings.ReplaceAll(s, canary, marker)
		if r.spelled != "" {
			n += strings.Count(s, r.spelled)
			s = strings.ReplaceAll(s, r.spelled, marker)
		}
		out.Strings = append(out.Strings, s)
	}
	return out, n, nil
}

// fixture is a pipeline and a started run.
type fixture struct {
	t        testing.TB
	kinds    *kinds.Registry
	log      *memory.Log
	redactor *redactor
	head     frame.Head
	clock    func() time.Time
	policy   accept.Policy
	assets   accept.Assets // nil means no asset store
}

var theRun = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: runID}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	registry, err := kinds.New(kinds.LintOff)
	require.NoError(t, err)
	_, err = registry.Register(note, version, []byte(noteSchema))
	require.NoError(t, err)
	return newFixtureWith(t, registry)
}

// newFixtureWith shares the registry between fixtures, since kinds take long to compile.
func newFixtureWith(t testing.TB, registry *kinds.Registry) *fixture {
	t.Helper()
	f := &fixture{
		t:        t,
		kinds:    registry,
		log:      memory.New(),
		redactor: &redactor{},
		policy:   accept.Policy{MaxInlineBytes: accept.DefaultMaxInlineBytes},
		clock:    func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) },
	}
	f.append(frame.NewStart(theRun, []byte(`{"runId":"run-1"}`)), 0)
	f.step(wire.Draft{Type: wire.EventRunStarted}, wire.Draft{Type: wire.EventNodeStarted, NodeID: nodeID})
	return f
}

func (f *fixture) append(fr *frame.Frame, after uint64) {
	f.t.Helper()
	pos, err := f.log.Append(context.Background(), fr, after)
	require.NoError(f.t, err)
	fr.Pos = pos
	f.head = fr.Head()
}

// step appends events of the executor.
func (f *fixture) step(drafts ...wire.Draft) {
	f.t.Helper()
	f.append(frame.New(theRun, subject.Step, f.head, f.placed(drafts)), f.head.Pos)
}

func (f *fixture) placed(drafts []wire.Draft) []wire.Event {
	var events []wire.Event
	for i, d := range drafts {
		events = append(events, d.Place(runID, f.head.Next+i, f.clock()))
	}
	return events
}

// pipeline makes a new pipeline with an empty cache, like another process.
func (f *fixture) pipeline() *accept.Pipeline {
	p := accept.New(f.kinds, f.redactor, accept.NewLogLedger(f.log, f.clock), f.clock, f.policy)
	if f.assets != nil {
		p.WithAssets(f.assets)
	}
	return p
}

// request returns a request at the head of the run.
func (f *fixture) request(doc string) accept.Request {
	return accept.Request{Target: accept.Target{Run: theRun, Head: f.head}, Document: []byte(doc), NodeID: nodeID}
}

// accept runs the document through a new pipeline.
func (f *fixture) accept(doc string, change ...func(*accept.Request)) *accept.Result {
	f.t.Helper()
	req := f.request(doc)
	for _, c := range change {
		c(&req)
	}
	res, err := f.pipeline().Run(context.Background(), req)
	require.NoError(f.t, err)
	return res
}

// events returns all events of the run.
func (f *fixture) events() []wire.Event {
	f.t.Helper()
	var out []wire.Event
	for _, fr := range f.log.Frames() {
		events, err := fr.Events()
		require.NoError(f.t, err)
		out = append(out, events...)
	}
	return out
}

// nothingRecorded asserts that the log is unchanged.
func (f *fixture) nothingRecorded() {
	f.t.Helper()
	frames := f.log.Frames()
	require.Equal(f.t, f.head.Pos, frames[len(frames)-1].Pos, "something was recorded")
}

// doc makes an envelope. set sets members; a nil value removes one.
func doc(kind, payload string, set ...map[string]any) string {
	m := map[string]any{
		"type":          kind,
		"schemaVersion": 1,
		"envelopeId":    "env-1",
		"correlationId": "corr-1",
		"payload":       json.RawMessage(payload),
		"meta":          map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z"},
	}
	if kind == note {
		m["schemaVersion"] = version
	}
	for _, s := range set {
		for k, v := range s {
			if v == nil {
				delete(m, k)
				continue
			}
			m[k] = v
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func with(name string, value any) map[string]any { return map[string]any{name: value} }

func meta(set ...any) map[string]any {
	m := map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00Z"}
	for i := 0; i < len(set); i += 2 {
		m[set[i].(string)] = set[i+1]
	}
	return with("meta", m)
}

// refused asserts a refusal and returns it.
func refused(t *testing.T, res *accept.Result, status accept.Status, code fault.Code) *accept.Refusal {
	t.Helper()
	require.NotNil(t, res.Refusal, "outcome: %s", res.Outcome)
	require.Equal(t, status, res.Refusal.Status, string(res.Outcome))
	require.Equal(t, code, res.Refusal.Code, string(res.Outcome))
	require.Equal(t, status, accept.StatusOf(res.Outcome))
	var o struct{ Reason string }
	require.NoError(t, json.Unmarshal(res.Outcome, &o))
	require.True(t, strings.HasPrefix(o.Reason, string(code)), o.Reason)
	require.Nil(t, res.Payload)
	require.Empty(t, res.Events)
	return res.Refusal
}

// accepted asserts an acceptance and returns its outcome.
func accepted(t *testing.T, res *accept.Result) accept.Acceptance {
	t.Helper()
	require.Nil(t, res.Refusal, "outcome: %s", res.Outcome)
	var a accept.Acceptance
	require.NoError(t, json.Unmarshal(res.Outcome, &a))
	require.Equal(t, accept.Accepted, a.Status)
	return a
}
