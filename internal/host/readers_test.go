package host

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"waybill.dev/waybill/internal/runlog/memory"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/gateway/wirejson"
	"waybill.dev/waybill/services/redactor/redact"
)

// A document passes many parsers: the gateway, the acceptor, the schema validator, the redactor, the
// log, the read model. These tests check that all of them read the same value.

// hidden is the registered secret of these tests.
const hidden = "hunter2-is-no-secret"

// FuzzReaders_AgreeOnOneMeaning: every later reader reads the same value from a document that the
// gateway accepts.
func FuzzReaders_AgreeOnOneMeaning(f *testing.F) {
	for _, doc := range hardCases() {
		f.Add([]byte(doc))
		f.Add([]byte(`{"text":` + doc + `}`))
		f.Add([]byte(`[` + doc + `,` + doc + `]`))
	}
	for _, envelope := range []string{
		`{"type":"vendor.acme.any","envelopeId":"e","correlationId":"c","payload":{"a":1},"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
		`{"type":"vendor.acme.any","Type":"error","envelopeId":"e","correlationId":"c","payload":1,"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
		`{"type":"error","\u0074ype":"vendor.acme.any","envelopeId":"e","correlationId":"c","payload":1,"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`,
		`{"type":"vendor.acme.any","schemaVersion":1.0e0,"envelopeId":"\u0065","correlationId":"c","payload":"\ud83d\ude00","meta":{"source":"user","ts":"2026-01-31t12:00:00z","label":"\u0000"}}`,
	} {
		f.Add([]byte(envelope))
	}
	r := newReaders(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		if strictjson.Check(doc, strictjson.Default) != nil {
			r.refuse(t, doc)
			return
		}
		want := meaning(t, doc)
		throughEncodingJSON(t, doc, want)
		throughProtobufJSON(t, doc, want)
		throughSchema(t, doc)
		throughGateway(t, doc, want)
		r.throughRedactor(t, doc, want)
		r.throughShapes(t, doc, want)
		r.throughLog(t, doc, want)
		throughRun(t, doc, want)
		throughDefinition(t, doc, want)
		r.asEnvelope(t, doc, want)
	})
}

// readers are the readers created once.
type readers struct {
	registry *kinds.Registry
	scrub    *redact.Scrubber
	shaped   *redact.Scrubber // with the second layer
	anything *schema.Schema
}

func newReaders(t testing.TB) readers {
	t.Helper()
	registry, err := kinds.New(kinds.LintOff)
	require.NoError(t, err)
	_, err = registry.Register("vendor.acme.any", 1, []byte(`{}`))
	require.NoError(t, err)
	anything, err := schema.Compile("anything", []byte(`{}`))
	require.NoError(t, err)
	known := []redact.Secret{{ID: "canary", Value: redact.Value(hidden)}}
	return readers{registry, redact.Compile(known), redact.Compile(known).With(redact.DefaultShapes()), anything}
}

// refuse: later readers also reject what the gateway rejects, because a document may arrive on another
// path.
func (r readers) refuse(t *testing.T, doc []byte) {
	t.Helper()
	require.Error(t, wirejson.Decode(doc, strictjson.Default, &openwopv1.JsonDocument{}))
	if depth(doc) <= strictjson.Default.MaxDepth { // the redactor and the validator look into wrapped documents
		_, _, err := r.scrub.JSON(doc, strictjson.Limits{MaxBytes: 16 << 20, MaxDepth: 128})
		require.Error(t, err)
		require.NotEmpty(t, r.anything.Validate(doc))
	}
	var any any
	require.False(t, strictjson.Read(doc, &any) == nil && depth(doc) <= strictjson.Default.MaxDepth && len(doc) <= strictjson.Default.MaxBytes)
	res := r.accept(t, memory.New(), doc)
	require.NotNil(t, res.Refusal)
	require.Equal(t, fault.InvalidEnvelopeShape, res.Refusal.Code)
}

func throughEncodingJSON(t *testing.T, doc []byte, want any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var whole any
	require.NoError(t, d.Decode(&whole))
	require.Equal(t, want, whole)
	var kept json.RawMessage
	require.NoError(t, strictjson.Read(doc, &kept))
	require.Equal(t, want, meaning(t, kept))
	if m, ok := want.(map[string]any); ok {
		var members map[string]json.RawMessage
		require.NoError(t, strictjson.Read(doc, &members))
		require.ElementsMatch(t, slices.Collect(maps.Keys(m)), slices.Collect(maps.Keys(members)))
		for name, raw := range members {
			require.Equal(t, m[name], meaning(t, raw))
		}
	}
}

// throughProtobufJSON uses protobuf's JSON reader, which stores numbers as doubles and rejects larger
// ones.
func throughProtobufJSON(t *testing.T, doc []byte, want any) {
	t.Helper()
	var v structpb.Value
	if err := protojson.Unmarshal(doc, &v); err != nil {
		require.True(t, holdsHuge(want), "%s: %v", doc, err)
		return
	}
	require.Equal(t, asDoubles(want), v.AsInterface())
}

// throughSchema: the validator finds a document equal to its re-encoded form.
func throughSchema(t *testing.T, doc []byte) {
	t.Helper()
	s, err := schema.Compile("const", []byte(`{"const":`+string(doc)+`}`))
	if err != nil {
		return // too long a number, too deep or too large for a schema: refused, not read otherwise
	}
	require.Empty(t, s.Validate(doc), "%s", doc)
	again, err := json.Marshal(meaning(t, doc))
	require.NoError(t, err)
	require.Empty(t, s.Validate(again), "%s", doc)
}

// throughGateway: as an open member of a request, over REST and as protobuf.
func throughGateway(t *testing.T, doc []byte, want any) {
	t.Helper()
	var req, sent, read openwopv1.CreateRunRequest
	limits := strictjson.Limits{MaxBytes: 2 << 20, MaxDepth: 65}
	require.NoError(t, wirejson.Decode([]byte(`{"workflowId":"w","inputs":`+string(doc)+`}`), limits, &req))
	require.Equal(t, want, meaning(t, req.GetInputs().GetJson()))
	b, err := proto.Marshal(&req)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(b, &sent))
	require.Equal(t, req.GetInputs().GetJson(), sent.GetInputs().GetJson())
	out, err := wirejson.Append(nil, &sent)
	require.NoError(t, err)
	require.NoError(t, wirejson.Decode(out, limits, &read))
	require.Equal(t, want, meaning(t, read.GetInputs().GetJson()))
	require.Equal(t, "w", read.GetWorkflowId())
}

// throughRedactor: redacting the bytes gives the same result as redacting the values.
func (r readers) throughRedactor(t *testing.T, doc []byte, want any) {
	t.Helper()
	out, count, err := r.scrub.JSON(doc, strictjson.Default)
	require.NoError(t, err)
	got := meaning(t, out)
	clean, clash := scrubbed(r.scrub, want)
	if !clash { // two names that became one get a suffix
		require.Equal(t, clean, got)
	}
	require.Equal(t, count == 0, bytes.Equal(doc, out))
	again, err := json.Marshal(got)
	require.NoError(t, err)
	require.NotContains(t, string(again), hidden)
}

// Redact makes the redactor's walk one for the pipeline, within the process.
func (r readers) Redact(_ context.Context, _ subject.Run, in accept.Texts) (out accept.Texts, count int, err error) {
	for _, d := range in.Documents {
		clean, n, err := r.scrub.JSON(d, strictjson.Limits{MaxBytes: 16 << 20, MaxDepth: 128})
		if err != nil {
			return accept.Texts{}, 0, err
		}
		out.Documents, count = append(out.Documents, clean), count+n
	}
	for _, text := range in.Strings {
		clean, n := r.scrub.Text(text)
		out.Strings, count = append(out.Strings, clean), count+n
	}
	return out, count, nil
}

var readersRun = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run-1"}

// accept runs an envelope through the accept pipeline, in a started run.
func (r readers) accept(t *testing.T, log *memory.Log, doc []byte) *accept.Result {
	t.Helper()
	clock := func() time.Time { return time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC) }
	first := frame.NewStart(readersRun, []byte(`{"runId":"run-1","workflowId":"wf","owner":{"tenant":"acme"}}`))
	pos, err := log.Append(t.Context(), first, 0)
	require.NoError(t, err)
	first.Pos = pos
	var sent, got acceptorv1.AcceptRequest
	sent.Envelope = doc
	b, err := proto.Marshal(&sent)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(b, &got))
	p := accept.New(r.registry, r, accept.NewLogLedger(log, clock), clock, accept.Policy{})
	res, err := p.Run(t.Context(), accept.Request{
		Target:   accept.Target{Run: readersRun, Head: first.Head()},
		Document: got.GetEnvelope(),
		NodeID:   "n",
	})
	require.NoError(t, err)
	return res
}

// throughLog: as the payload of an envelope, through the log and the read model, with the secret
// redacted.
func (r readers) throughLog(t *testing.T, doc []byte, want any) {
	t.Helper()
	log := memory.New()
	res := r.accept(t, log, []byte(`{"type":"vendor.acme.any","schemaVersion":1,"envelopeId":"e","correlationId":"c","payload":`+string(doc)+
		`,"meta":{"source":"user","ts":"2026-01-31T12:00:00Z"}}`))
	if res.Refusal != nil { // a number too long to compare, or more members than a check may cost
		require.Contains(t, []fault.Code{fault.EnvelopeInvalid, fault.InvalidEnvelopeShape}, res.Refusal.Code)
		return
	}
	clean, clash := scrubbed(r.scrub, want)
	if clash {
		return
	}
	require.Equal(t, clean, meaning(t, res.Payload))
	readModel(t, log, clean)
}

// readModel folds the log and compares the envelope's payload, in the state and in
// the bytes of the event.
func readModel(t *testing.T, log *memory.Log, want any) {
	t.Helper()
	frames := log.Frames()
	require.NoError(t, frame.VerifyChain(frames))
	run, err := project.Begin(frames[0])
	require.NoError(t, err)
	for _, f := range frames[1:] {
		parsed, err := frame.Parse(f.Run.Frame(f.Kind), func(k string) string { return f.Headers()[k] }, f.Body)
		require.NoError(t, err)
		parsed.Pos = f.Pos
		require.NoError(t, run.Apply(parsed))
		events, err := wire.SplitArray(f.Body)
		require.NoError(t, err)
		require.Len(t, events, 1)
		event, _ := meaning(t, events[0]).(map[string]any)
		require.Equal(t, want, event["payload"].(map[string]any)["payload"])
	}
	require.Equal(t, want, meaning(t, run.State.Envelopes["c"].Payload))
}

// asEnvelope: an accepted document has the meaning of its exact member names.
func (r readers) asEnvelope(t *testing.T, doc []byte, want any) {
	t.Helper()
	members, _ := want.(map[string]any)
	kind, correlation := accept.Peek(doc)
	for name, got := range map[string]string{"type": kind, "correlationId": correlation} {
		if said, ok := members[name].(string); got != "" || ok && len(said) <= 128 {
			require.Equal(t, said, got)
		}
	}
	res := r.accept(t, memory.New(), doc)
	if res.Refusal != nil {
		return
	}
	require.Equal(t, members["type"], res.Attributes.Kind)
	require.Equal(t, members["envelopeId"], res.Attributes.EnvelopeID)
	require.Equal(t, members["correlationId"], res.Attributes.CorrelationID)
	for _, e := range res.Events {
		require.Equal(t, members["correlationId"], e.CausationID)
	}
}
