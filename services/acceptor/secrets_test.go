package acceptor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// This file tests whose secrets must be registered before something is accepted, and
// what becomes of envelopes that come when they are forgotten (OpenWOP envelope
// contract §11, registry).

// register tells the redactor a secret of the outside run, or of its tenant.
func (h *host) register(t *testing.T, runID, id, value string) {
	t.Helper()
	_, err := h.redactor.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope: &redactorv1.Scope{Tenant: outside.GetTenant(), RunId: runID}, Secrets: []*redactorv1.Secret{{Id: id, Value: value}},
	})
	require.NoError(t, err)
}

// restart makes the redactor forget what a restarted one does not know.
func (r *redactor) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.secrets)
}

// refused expects that the redactor does not know somebody's secrets, and that the
// outside run has n frames.
func (h *host) refused(t *testing.T, err error, n int, who ...any) {
	t.Helper()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "%v", err)
	f, ok := fault.As(err)
	require.True(t, ok)
	require.Equal(t, who, f.Details["unregistered"])
	require.Contains(t, f.Message, "waybill.redactor.v1.Redactor/Register")
	require.Positive(t, f.RetryAfter)
	require.Len(t, h.frames(t), n)
}

// atHead is a request that names the head of the outside run, anywhere one that does not.
func (h *host) atHead(t *testing.T, envelope []byte) *acceptorv1.AcceptRequest {
	t.Helper()
	frames := h.frames(t)
	return atFrame(frames[len(frames)-1], envelope)
}

func atFrame(f *frame.Frame, envelope []byte) *acceptorv1.AcceptRequest {
	head := f.Head()
	return &acceptorv1.AcceptRequest{
		Run: outside, NodeId: "ask", Envelope: envelope, Head: &runlogv1.Head{Pos: head.Pos, Hash: head.Hash, Next: int32(head.Next)}, //nolint:gosec // G115: a test
	}
}

func atNoHead(_ *host, _ *testing.T, envelope []byte) *acceptorv1.AcceptRequest {
	return &acceptorv1.AcceptRequest{Run: outside, NodeId: "ask", Envelope: envelope}
}

// ways are those in which an executor outside hands an envelope in.
var ways = map[string]func(*host, *testing.T, []byte) *acceptorv1.AcceptRequest{"at no head": atNoHead, "at a head": (*host).atHead}

const tenantCanary = "sk-canary-of-the-tenant"

// saying is the good envelope, with a text.
func saying(id, text string) []byte {
	return []byte(strings.Replace(string(numbered(id)), "<hi>", text, 1))
}

// OpenWOP envelope contract §11, registry: a run whose secrets, or whose tenant's, are
// not registered is not accepted for.
func TestAccept_WaitsForTheSecretsOfTheRunAndItsTenant(t *testing.T) {
	t.Parallel()
	leak := saying("c1", canary+" "+tenantCanary)
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside})
			require.NoError(t, err)
			_, err = h.Accept(t.Context(), with(h, t, leak))
			h.refused(t, err, 2, "run", "tenant")
			h.register(t, outside.GetRunId(), "k", canary)
			_, err = h.Accept(t.Context(), with(h, t, leak))
			h.refused(t, err, 2, "tenant")
			h.register(t, tenantScope, "t", tenantCanary)
			h.redactor.restart()
			_, err = h.Accept(t.Context(), with(h, t, leak))
			h.refused(t, err, 2, "run", "tenant")
			_, err = h.Accept(t.Context(), with(h, t, []byte(strings.Replace(string(leak), `"type":"`, `"type":"`+canary, 1))))
			h.refused(t, err, 2, "run", "tenant")
			h.register(t, tenantScope, "t", tenantCanary)
			_, err = h.Accept(t.Context(), with(h, t, leak))
			h.refused(t, err, 2, "run")
			h.register(t, outside.GetRunId(), "k", canary)
			res, err := h.Accept(t.Context(), with(h, t, leak))
			require.NoError(t, err)
			require.Contains(t, string(res.GetPayload()), "[REDACTED:k] [REDACTED:t]")
			for _, f := range h.frames(t) {
				require.NotContains(t, string(f.Body), canary)
				require.NotContains(t, string(f.Body), tenantCanary)
			}
		})
	}
}

// OpenWOP envelope contract §11, registry: of several redactors the one that is asked
// must have been told what the caller registered.
func TestAccept_NamesToTheRedactorWhatItMustHaveBeenTold(t *testing.T) {
	t.Parallel()
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside, NoTenantSecrets: true})
			require.NoError(t, err)
			h.register(t, outside.GetRunId(), "k", canary)
			req := with(h, t, []byte(form))
			req.Registrations = []string{"run:a"}
			_, err = h.Accept(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, []string{"run:a"}, h.redactor.named)
			_, err = h.CheckSubmit(t.Context(), &acceptorv1.CheckSubmitRequest{
				Run: outside, CorrelationId: "form", Values: []byte(`{"wrong":1}`), Registrations: []string{"run:b"},
			})
			require.NoError(t, err)
			require.Equal(t, []string{"run:b"}, h.redactor.named)
			_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: outside, Status: "cancelled", Message: "enough", Registrations: []string{"run:c"}})
			require.NoError(t, err)
			require.Equal(t, []string{"run:c"}, h.redactor.named)
		})
	}
}

func TestAccept_WaitsForNoSecretsThatTheOpenerSaysThereAreNot(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside, NoTenantSecrets: true})
	require.NoError(t, err)
	_, err = h.Accept(t.Context(), atNoHead(h, t, numbered("c1")))
	h.refused(t, err, 2, "run")
	h.register(t, outside.GetRunId(), "k", canary)
	h.anywhere(t, numbered("c1"))

	h = start(t, nil)
	h.open(t, outside, "")
	h.anywhere(t, numbered("c1"))
}

// A run that was opened by a host which did not ask yet is not let through.
func TestAccept_WaitsForTheSecretsOfARunWhoseRecordSaysNothing(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	run := subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}
	_, err := h.log.Append(t.Context(), frame.NewOpen(run, []byte(
		`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"createdAt":"2026-01-31T12:00:00.000Z","engineVersion":1,"opened":true}`)), 0)
	require.NoError(t, err)
	_, err = h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside})
	require.NoError(t, err, "it is the default")
	_, err = h.Accept(t.Context(), atNoHead(h, t, numbered("c1")))
	h.refused(t, err, 2, "run", "tenant")
}

func TestCloseRun_ForgetsTheSecretsOfTheRun(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside, NoTenantSecrets: true})
	require.NoError(t, err)
	h.register(t, outside.GetRunId(), "k", canary)
	recorded := h.anywhere(t, numbered("c1"))
	req := &acceptorv1.CloseRunRequest{Run: outside, Status: "failed", ErrorCode: "x.y", Message: "it said " + canary}
	h.redactor.restart()
	_, err = h.CloseRun(t.Context(), req)
	h.refused(t, err, 3, "run")
	h.register(t, outside.GetRunId(), "k", canary)
	first, err := h.CloseRun(t.Context(), req)
	require.NoError(t, err)
	frames := h.frames(t)
	require.Contains(t, string(frames[len(frames)-1].Body), "it said [REDACTED:k]")
	require.Empty(t, h.redactor.secrets)

	again, err := h.CloseRun(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, first.String(), again.String())
	require.Equal(t, recorded.GetOutcome(), h.anywhere(t, numbered("c1")).GetOutcome(), "what was recorded can still be asked for")
	h.stopRedactor()
	_, err = h.CloseRun(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.ErrorContains(t, err, "the run has ended")
}

func TestCloseRun_NeedsNoSecretsWhereItSaysNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"completed", "cancelled"} {
		h := start(t, nil)
		_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside})
		require.NoError(t, err)
		_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: outside, Status: status})
		require.NoError(t, err, "registered or not")
		require.Len(t, h.frames(t), 3)
	}
}

// late are envelopes that come after their run has ended, and what is said of them.
var late = map[string]struct {
	envelope []byte
	code     fault.Code
	outcome  string
}{
	"fragment": {
		[]byte(strings.Replace(string(saying("c2", canary)), `"payload":`, `"partial":{"isPartial":true,"index":0,"total":-1},"payload":`, 1)), fault.RunTerminal, "",
	},
	"envelope":                {saying("c2", canary), fault.RunTerminal, ""},
	"unknown type":            {[]byte(strings.Replace(string(numbered("c2")), "vendor.acme.note", "vendor.acme."+canary, 1)), fault.RunTerminal, ""},
	"secret in an id":         {saying(canary, "x"), fault.RunTerminal, ""},
	"no envelope":             {[]byte(`{"` + canary + `":`), fault.RunTerminal, ""},
	"recorded before":         {numbered("c1"), "", `"status":"accepted"`},
	"recorded, now otherwise": {saying("c1", canary), "", `"status":"accepted"`},
	"recorded as another type": {
		[]byte(strings.Replace(string(numbered("c1")), "vendor.acme.note", "vendor.acme."+canary, 1)), "", `"envelope_correlation_conflict: `,
	},
}

// OpenWOP envelope contract §11, registry: the secrets die with the run, so of what
// comes later nothing may be shown.
func TestAccept_ShowsNothingOfAnEnvelopeWhoseRunHasEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range late {
		for way, with := range ways {
			for state, after := range map[string]struct {
				open *acceptorv1.OpenRunRequest
				// then is what the redactor is told after the end.
				then func(*host, *testing.T)
			}{
				"forgotten":        {&acceptorv1.OpenRunRequest{Run: outside, NoTenantSecrets: true}, func(*host, *testing.T) {}},
				"without secrets":  {&acceptorv1.OpenRunRequest{Run: outside, NoSecrets: true}, func(*host, *testing.T) {}},
				"registered again": {&acceptorv1.OpenRunRequest{Run: outside, NoTenantSecrets: true}, func(h *host, t *testing.T) { h.register(t, outside.GetRunId(), "o", "another-secret") }},
			} {
				t.Run(name+" "+way+" "+state, func(t *testing.T) {
					t.Parallel()
					h := start(t, nil)
					_, err := h.OpenRun(t.Context(), after.open)
					require.NoError(t, err)
					h.register(t, outside.GetRunId(), "k", canary)
					recorded := h.anywhere(t, numbered("c1"))
					_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: outside, Status: "completed"})
					require.NoError(t, err)
					after.then(h, t)

					req := with(h, t, tc.envelope)
					req.NodeId = canary
					res, err := h.Accept(t.Context(), req)
					require.Equal(t, tc.code, fault.CodeOf(err), "%v", err)
					require.Contains(t, string(res.GetOutcome()), tc.outcome)
					if strings.Contains(tc.outcome, "accepted") {
						require.Equal(t, recorded.GetOutcome(), res.GetOutcome())
						require.Equal(t, recorded.GetEvents(), res.GetEvents())
					}
					require.Len(t, h.frames(t), 4)
					for where, shown := range map[string]string{"answer": res.String(), "error": errorText(err), "log": h.lines.String(), "spans": h.spans.String()} {
						require.NotContains(t, shown, canary, where)
					}
				})
			}
		}
	}
}

// A caller may know an older head, and the acceptor not have read of the end: it hears
// of it when the redactor does not know the run any more.
func TestAccept_ShowsNothingToACallerWhoDoesNotKnowOfTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range late {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: outside, NoTenantSecrets: true})
			require.NoError(t, err)
			h.register(t, outside.GetRunId(), "k", canary)
			h.anywhere(t, numbered("c1"))
			frames := h.frames(t)
			last := frames[len(frames)-1]
			// Another process ends the run, so that this acceptor has not read of it.
			end := frame.New(last.Run, subject.End, last.Head(), nil)
			_, err = h.log.Append(t.Context(), end, last.Pos)
			require.NoError(t, err)
			h.redactor.restart()

			code := tc.code
			if code == fault.RunTerminal && name != "no envelope" {
				code = fault.Conflict // it has to read the log
			}
			req := atFrame(last, tc.envelope)
			req.NodeId = canary
			res, err := h.Accept(t.Context(), req)
			require.Equal(t, code, fault.CodeOf(err), "%v", err)
			require.Contains(t, string(res.GetOutcome()), tc.outcome)
			for where, shown := range map[string]string{"answer": res.String(), "error": errorText(err), "log": h.lines.String(), "spans": h.spans.String()} {
				require.NotContains(t, shown, canary, where)
			}
		})
	}
}

// A run of this host uses its tenant's key: whoever ends it has the key forgotten, also
// while the answer of a model is still on its way.
func TestAccept_ShowsNothingOfAnAnswerToARunThatWasCancelledMeanwhile(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	run := subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}
	first := frame.NewStart(run, []byte(`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"credentialRef":"main"}`))
	pos, err := h.log.Append(t.Context(), first, 0)
	require.NoError(t, err)
	first.Pos = pos
	fragment := late["fragment"].envelope
	_, err = h.Accept(t.Context(), atFrame(first, fragment))
	h.refused(t, err, 1, "run")
	h.register(t, outside.GetRunId(), "main", canary)
	res, err := h.Accept(t.Context(), atFrame(first, fragment))
	require.NoError(t, err)
	require.Contains(t, string(res.GetOutcome()), `"accepted"`)
	require.Empty(t, res.GetPayload())

	_, err = h.log.Append(t.Context(), frame.New(run, subject.End, first.Head(), nil), pos)
	require.NoError(t, err)
	h.redactor.restart()
	res, err = h.Accept(t.Context(), atFrame(first, fragment))
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	require.NotContains(t, res.String()+errorText(err)+h.lines.String()+h.spans.String(), canary)
}

func errorText(err error) string {
	f, ok := fault.As(err)
	if !ok {
		return ""
	}
	return err.Error() + string(f.Envelope())
}
