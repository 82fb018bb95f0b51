package accept_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

const (
	usageOfCall    = `{"provider":"mock","model":"mini","inputTokens":1,"outputTokens":2,"nodeId":"ask"}`
	recoveryOfCall = `{"nodeId":"ask","path":"markdown-fence","byteOffset":8}`
)

// after adds preceding events to a request.
func after(r *accept.Request) {
	r.Preceding = []wire.Draft{
		{Type: wire.EventProviderUsage, NodeID: nodeID, Payload: json.RawMessage(usageOfCall)},
		{Type: wire.EventEnvelopeRecovery, NodeID: nodeID, Payload: json.RawMessage(recoveryOfCall)},
	}
}

// OpenWOP envelope contract §14.5: provider.usage, envelope.recovery.applied, then the
// envelope's own events, in one append.
func TestPreceding_IsRecordedBeforeTheEnvelopesEventsInOneFrame(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before, next := len(f.log.Frames()), f.head.Next
	res := f.accept(doc(note, goodNote), after)
	accepted(t, res)

	frames := f.log.Frames()
	require.Len(t, frames, before+1)
	require.NoError(t, frame.VerifyChain(frames))
	last := frames[before]
	require.Equal(t, []wire.EventType{
		wire.EventProviderUsage, wire.EventEnvelopeRecovery, wire.EventArtifactCreated,
	}, last.Types)
	require.Equal(t, last.Head(), res.Head)
	events, err := last.Events()
	require.NoError(t, err)
	require.Equal(t, events[:2], res.Preceding)
	require.Equal(t, events[2:], res.Events, "the outcome names the envelope's own events")
	for i, e := range events {
		require.Equal(t, next+i, e.Sequence)
		require.Equal(t, runID, e.RunID)
		require.Equal(t, nodeID, e.NodeID)
	}
	require.Equal(t, usageOfCall, string(events[0].Payload))
	require.Empty(t, events[0].CausationID, "preceding events have no cause")
	require.Equal(t, "corr-1", events[2].CausationID)
}

// The outcome has the same bytes from any process, and records no preceding events again.
func TestPreceding_IsNotRecordedAgainWithARecalledOutcome(t *testing.T) {
	t.Parallel()
	for kind, payload := range everyKind {
		f := newFixture(t)
		first := f.accept(doc(kind, payload), after)
		accepted(t, first)
		require.Len(t, first.Preceding, 2)
		frames := len(f.log.Frames())
		f.clock = func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
		for _, at := range []frame.Head{f.head, first.Head} { // before its frame, and behind it
			again := f.accept(doc(kind, payload), after, func(r *accept.Request) { r.Head = at })
			require.True(t, again.Recalled, kind)
			require.Equal(t, string(first.Outcome), string(again.Outcome))
			require.Equal(t, first.Events, again.Events)
			require.Equal(t, first.Head, again.Head)
			require.Empty(t, again.Preceding)
		}
		require.Len(t, f.log.Frames(), frames)
	}
}

// A refusal of any step appends no frame, so no preceding events either.
func TestPreceding_IsNotRecordedWithARefusedEnvelope(t *testing.T) {
	t.Parallel()
	clashing := func(f *fixture) {
		f.head = f.accept(doc("error", `{"code":"x","message":"y"}`)).Head
	}
	for name, tc := range map[string]struct {
		doc    string
		first  func(*fixture)
		change func(*accept.Request)
		code   fault.Code
	}{
		"shape":   {doc: `{}`, code: fault.InvalidEnvelopeShape},
		"kind":    {doc: doc("vendor.acme.memo", `{}`), code: fault.UnknownEnvelopeKind},
		"version": {doc: doc(note, goodNote, with("schemaVersion", version+1)), code: fault.UnknownSchemaVersion},
		"payload": {doc: doc(note, `{"text":7}`), code: fault.EnvelopeInvalid},
		"contract": {
			doc:    doc(note, goodNote),
			change: func(r *accept.Request) { r.Contract = &accept.Contract{} },
			code:   fault.EnvelopeContractViolation,
		},
		"limits": {doc: doc(note, goodNote), change: func(r *accept.Request) {
			r.Counters.EnvelopesPerTurn = &accept.Counter{Current: 1, Cap: 1}
		}, code: fault.CapBreached},
		"redact": {doc: doc(note, goodNote, with("envelopeId", canary)), code: fault.InvalidEnvelopeShape},
		"approval": {
			doc:    doc(note, goodNote, meta("contentTrust", "untrusted")),
			change: func(r *accept.Request) { r.ApprovalContext = true },
			code:   fault.UntrustedBlocksApproval,
		},
		"dedup": {doc: doc(note, goodNote), first: clashing, code: fault.EnvelopeCorrelationClash},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if tc.first != nil {
				tc.first(f)
			}
			change := []func(*accept.Request){after}
			if tc.change != nil {
				change = append(change, tc.change)
			}
			res := f.accept(tc.doc, change...)
			require.NotNil(t, res.Refusal, "outcome: %s", res.Outcome)
			require.Equal(t, tc.code, res.Refusal.Code)
			require.Empty(t, res.Preceding)
			f.nothingRecorded()
		})
	}
}

// A fragment is not recorded, and neither are its preceding events.
func TestPreceding_IsNotRecordedWithAFragment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, `{}`, with("partial", map[string]any{"isPartial": true, "index": 0, "total": -1})), after)
	accepted(t, res)
	require.Empty(t, res.Preceding)
	f.nothingRecorded()
}

func TestPreceding_IsRedactedAndAtMostAsTrustedAsTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc(note, goodNote), after, func(r *accept.Request) {
		r.Preceding[0].Payload = json.RawMessage("{\"model\":\"" + canary + "\",\n\"nodeId\":\"ask\"}")
		r.Boundary = wire.Untrusted
	})
	accepted(t, res)
	require.Equal(t, `{"model":"`+marker+`","nodeId":"ask"}`, string(res.Preceding[0].Payload), "on one line")
	for _, e := range f.events()[f.head.Next:] {
		require.Equal(t, wire.Untrusted, e.ContentTrust, e.Type)
		require.NotContains(t, string(e.Payload), canary)
	}
	f.redactor.err = fault.New(fault.ServiceUnavailable, "no redactor")
	req := f.request(doc(note, goodNote, with("correlationId", "corr-2")))
	after(&req)
	_, err := f.pipeline().Run(t.Context(), req)
	require.Error(t, err)
	require.Len(t, f.events(), f.head.Next+3, "nothing is recorded without the redactor")
}

// The winner's events are recorded, including its usage. The loser's are not.
func TestPreceding_IsNotRecordedByTheLoserOfARace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fast := f.pipeline()
	req := f.request(doc(note, goodNote))
	after(&req)
	log := &overtaken{Log: f.log, by: func() {
		res, err := fast.Run(context.Background(), req)
		require.NoError(t, err)
		require.Len(t, res.Preceding, 2)
	}}
	slow := accept.New(f.kinds, f.redactor, accept.NewLogLedger(log, func() time.Time { return f.clock().Add(time.Second) }), f.clock, f.policy)
	res, err := slow.Run(t.Context(), req)
	require.NoError(t, err)
	require.True(t, res.Recalled)
	require.Empty(t, res.Preceding)
	require.Equal(t, 1, strings.Count(typesOf(f.events()), string(wire.EventProviderUsage)))
}

// A frame that is too large is not recorded in part.
func TestPreceding_IsNotRecordedIfTheFrameIsTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log := &limited{Log: f.log, most: 700}
	p := accept.New(f.kinds, f.redactor, accept.NewLogLedger(log, f.clock), f.clock, f.policy)
	req := f.request(doc(note, goodNote))
	after(&req)
	_, err := p.Run(t.Context(), req)
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	f.nothingRecorded()
	req.Preceding = nil
	res, err := p.Run(t.Context(), req)
	require.NoError(t, err, "the envelope alone fits")
	accepted(t, res)
}

// The acknowledgement of the append is lost. The repeated request finds the one frame.
func TestPreceding_IsInTheLogOnceWhenTheAcknowledgementIsLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	req := f.request(doc(note, goodNote))
	after(&req)
	p := accept.New(f.kinds, f.redactor, accept.NewLogLedger(&deaf{Log: f.log}, f.clock), f.clock, f.policy)
	_, err := p.Run(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	res := f.accept(doc(note, goodNote), after)
	require.True(t, res.Recalled)
	require.Empty(t, res.Preceding)
	require.Equal(t, 1, strings.Count(typesOf(f.events()), string(wire.EventProviderUsage)))
}

func typesOf(events []wire.Event) string {
	var types []string
	for _, e := range events {
		types = append(types, string(e.Type))
	}
	return strings.Join(types, " ")
}

// overtaken is a log to which another writer appends first.
type overtaken struct {
	runlog.Log
	by func()
}

func (l *overtaken) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	l.by()
	return l.Log.Append(ctx, f, after)
}

// limited is a log whose server limits the size of a frame.
type limited struct {
	runlog.Log
	most int
}

func (l *limited) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if len(f.Body) > l.most {
		return 0, &runlog.TooLargeError{Size: int64(len(f.Body)), Limit: int64(l.most)}
	}
	return l.Log.Append(ctx, f, after)
}

// deaf is a log that loses acknowledgements.
type deaf struct{ runlog.Log }

func (l *deaf) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if _, err := l.Log.Append(ctx, f, after); err != nil {
		return 0, err
	}
	return 0, runlog.ErrUnavailable
}
