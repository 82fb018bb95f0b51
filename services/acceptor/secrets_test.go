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

// This file tests which secrets must be registered before an envelope is accepted, and
// what happens to envelopes after the secrets are forgotten (OpenWOP envelope contract
// §11, registry).

// register registers a secret of the external run, or of its tenant.
func (h *host) register(t *testing.T, runID, id, value string) {
	t.Helper()
	_, err := h.redactor.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope:   &redactorv1.Scope{Tenant: externalRun.GetTenant(), RunId: runID},
		Secrets: []*redactorv1.Secret{{Id: id, Value: value}},
	})
	require.NoError(t, err)
}

// restart makes the redactor forget all secrets.
func (r *redactor) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.secrets)
}

// refused asserts that the secrets of the scopes are not registered, and that the
// external run has n frames.
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

// atHead returns a request with the head of the external run; anywhere sends one without.
func (h *host) atHead(t *testing.T, envelope []byte) *acceptorv1.AcceptRequest {
	t.Helper()
	frames := h.frames(t)
	return atFrame(frames[len(frames)-1], envelope)
}

func atFrame(f *frame.Frame, envelope []byte) *acceptorv1.AcceptRequest {
	head := f.Head()
	return &acceptorv1.AcceptRequest{
		Run: externalRun, NodeId: "ask", Envelope: envelope, Head: &runlogv1.Head{Pos: head.Pos, Hash: head.Hash, Next: int32(head.Next)}, //nolint:gosec // G115: a test
	}
}

func atNoHead(_ *host, _ *testing.T, envelope []byte) *acceptorv1.AcceptRequest {
	return &acceptorv1.AcceptRequest{Run: externalRun, NodeId: "ask", Envelope: envelope}
}

// ways are the two ways in which an external executor submits an envelope.
var ways = map[string]func(*host, *testing.T, []byte) *acceptorv1.AcceptRequest{
	"at no head": atNoHead,
	"at a head":  (*host).atHead,
}

const tenantCanary = "sk-canary-of-the-tenant"

// saying returns the good envelope with a text.
func saying(id, text string) []byte {
	return []byte(strings.Replace(string(numbered(id)), "<hi>", text, 1))
}

// OpenWOP envelope contract §11, registry: without the registered secrets of the run and
// its tenant no envelope is accepted.
func TestAccept_NeedsTheRegisteredSecretsOfRunAndTenant(t *testing.T) {
	t.Parallel()
	leak := saying("c1", canary+" "+tenantCanary)
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun})
			require.NoError(t, err)
			_, err = h.Accept(t.Context(), with(h, t, leak))
			h.refused(t, err, 2, "run", "tenant")
			h.register(t, externalRun.GetRunId(), "k", canary)
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
			h.register(t, externalRun.GetRunId(), "k", canary)
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

// OpenWOP envelope contract §11, registry: with several redactors, the one that is called
// must have the caller's registrations.
func TestAccept_ForwardsRegistrationsToTheRedactor(t *testing.T) {
	t.Parallel()
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true})
			require.NoError(t, err)
			h.register(t, externalRun.GetRunId(), "k", canary)
			req := with(h, t, []byte(form))
			req.Registrations = []string{"run:a"}
			_, err = h.Accept(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, []string{"run:a"}, h.redactor.named)
			_, err = h.CheckSubmit(t.Context(), &acceptorv1.CheckSubmitRequest{
				Run: externalRun, CorrelationId: "form", Values: []byte(`{"wrong":1}`), Registrations: []string{"run:b"},
			})
			require.NoError(t, err)
			require.Equal(t, []string{"run:b"}, h.redactor.named)
			_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{
				Run:           externalRun,
				Status:        "cancelled",
				Message:       "enough",
				Registrations: []string{"run:c"},
			})
			require.NoError(t, err)
			require.Equal(t, []string{"run:c"}, h.redactor.named)
		})
	}
}

func TestAccept_NeedsNoSecretsThatOpenRunExcludes(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true})
	require.NoError(t, err)
	_, err = h.Accept(t.Context(), atNoHead(h, t, numbered("c1")))
	h.refused(t, err, 2, "run")
	h.register(t, externalRun.GetRunId(), "k", canary)
	h.anywhere(t, numbered("c1"))

	h = start(t, nil)
	h.open(t, externalRun, "")
	h.anywhere(t, numbered("c1"))
}

// A run that an older host opened has no secret flags. It needs both registrations.
func TestAccept_NeedsTheSecretsOfARunWithoutSecretFlags(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	run := subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}
	_, err := h.log.Append(t.Context(), frame.NewOpen(run, []byte(
		`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"createdAt":"2026-01-31T12:00:00.000Z","engineVersion":1,"opened":true}`)), 0)
	require.NoError(t, err)
	_, err = h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun})
	require.NoError(t, err, "it is the default")
	_, err = h.Accept(t.Context(), atNoHead(h, t, numbered("c1")))
	h.refused(t, err, 2, "run", "tenant")
}

func TestCloseRun_ForgetsTheSecretsOfTheRun(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true})
	require.NoError(t, err)
	h.register(t, externalRun.GetRunId(), "k", canary)
	recorded := h.anywhere(t, numbered("c1"))
	req := &acceptorv1.CloseRunRequest{Run: externalRun, Status: "failed", ErrorCode: "x.y", Message: "it said " + canary}
	h.redactor.restart()
	_, err = h.CloseRun(t.Context(), req)
	h.refused(t, err, 3, "run")
	h.register(t, externalRun.GetRunId(), "k", canary)
	first, err := h.CloseRun(t.Context(), req)
	require.NoError(t, err)
	frames := h.frames(t)
	require.Contains(t, string(frames[len(frames)-1].Body), "it said [REDACTED:k]")
	require.Empty(t, h.redactor.secrets)

	again, err := h.CloseRun(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, first.String(), again.String())
	require.Equal(t, recorded.GetOutcome(), h.anywhere(t, numbered("c1")).GetOutcome(), "a recorded outcome can still be looked up")
	h.stopRedactor()
	_, err = h.CloseRun(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	require.ErrorContains(t, err, "the run has ended")
}

func TestCloseRun_WithoutTextsNeedsNoSecrets(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"completed", "cancelled"} {
		h := start(t, nil)
		_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun})
		require.NoError(t, err)
		_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: externalRun, Status: status})
		require.NoError(t, err, "registered or not")
		require.Len(t, h.frames(t), 3)
	}
}

// late are envelopes after the end of their run, and the expected answers.
var late = map[string]struct {
	envelope []byte
	code     fault.Code
	outcome  string
}{
	"fragment": {
		[]byte(strings.Replace(string(saying("c2", canary)), `"payload":`, `"partial":{"isPartial":true,"index":0,"total":-1},"payload":`, 1)),
		fault.RunTerminal, "",
	},
	"envelope": {saying("c2", canary), fault.RunTerminal, ""},
	"unknown type": {
		[]byte(strings.Replace(string(numbered("c2")), "vendor.acme.note", "vendor.acme."+canary, 1)),
		fault.RunTerminal, "",
	},
	"secret in an id":         {saying(canary, "x"), fault.RunTerminal, ""},
	"no envelope":             {[]byte(`{"` + canary + `":`), fault.RunTerminal, ""},
	"recorded before":         {numbered("c1"), "", `"status":"accepted"`},
	"recorded, now otherwise": {saying("c1", canary), "", `"status":"accepted"`},
	"recorded as another type": {
		[]byte(strings.Replace(string(numbered("c1")), "vendor.acme.note", "vendor.acme."+canary, 1)),
		"", `"envelope_correlation_conflict: `,
	},
}

// OpenWOP envelope contract §11, registry: the secrets are forgotten at the end of the
// run, so nothing of a later envelope may be shown.
func TestAccept_ShowsNothingOfAnEnvelopeWhoseRunHasEnded(t *testing.T) {
	t.Parallel()
	for name, tc := range late {
		for way, with := range ways {
			for state, after := range map[string]struct {
				open *acceptorv1.OpenRunRequest
				// then changes the redactor's registrations after the end.
				then func(*host, *testing.T)
			}{
				"forgotten": {
					&acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true},
					func(*host, *testing.T) {},
				},
				"without secrets": {&acceptorv1.OpenRunRequest{Run: externalRun, NoSecrets: true}, func(*host, *testing.T) {}},
				"registered again": {
					&acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true},
					func(h *host, t *testing.T) { h.register(t, externalRun.GetRunId(), "o", "another-secret") },
				},
			} {
				t.Run(name+" "+way+" "+state, func(t *testing.T) {
					t.Parallel()
					h := start(t, nil)
					_, err := h.OpenRun(t.Context(), after.open)
					require.NoError(t, err)
					h.register(t, externalRun.GetRunId(), "k", canary)
					recorded := h.anywhere(t, numbered("c1"))
					_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: externalRun, Status: "completed"})
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
					for where, shown := range map[string]string{
						"answer": res.String(),
						"error":  errorText(err),
						"log":    h.lines.String(),
						"spans":  h.spans.String(),
					} {
						require.NotContains(t, shown, canary, where)
					}
				})
			}
		}
	}
}

// The caller may have an older head, and the acceptor may not have read the end. It
// detects the end when the redactor has no registration of the run.
func TestAccept_ShowsNothingToACallerWithAHeadBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range late {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			_, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true})
			require.NoError(t, err)
			h.register(t, externalRun.GetRunId(), "k", canary)
			h.anywhere(t, numbered("c1"))
			frames := h.frames(t)
			last := frames[len(frames)-1]
			// Another process ends the run, so that this acceptor's cache does not have the end.
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
			for where, shown := range map[string]string{
				"answer": res.String(),
				"error":  errorText(err),
				"log":    h.lines.String(),
				"spans":  h.spans.String(),
			} {
				require.NotContains(t, shown, canary, where)
			}
		})
	}
}

// A run of this host uses its tenant's key. The key may be forgotten at the end of the
// run, while a model call is still in progress.
func TestAccept_ShowsNothingOfAnAnswerAfterItsRunWasCancelled(t *testing.T) {
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
	h.register(t, externalRun.GetRunId(), "main", canary)
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
