package acceptor_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/accept"
)

var externalRun = &runlogv1.RunRef{Tenant: "acme", WorkflowId: "agent", RunId: "theirs-1"}

func (h *host) open(t *testing.T, run *runlogv1.RunRef, boundary string) *runlogv1.Head {
	t.Helper()
	res, err := h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: run, TrustBoundary: boundary, NoSecrets: true})
	require.NoError(t, err)
	return res.GetHead()
}

// numbered returns the good envelope with another correlationId.
func numbered(id string) []byte {
	return []byte(strings.Replace(good, `"correlationId":"c"`, `"correlationId":"`+id+`"`, 1))
}

func (h *host) anywhere(t *testing.T, envelope []byte) *acceptorv1.AcceptResponse {
	t.Helper()
	res, err := h.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: externalRun, NodeId: "ask", Envelope: envelope})
	require.NoError(t, err)
	return res
}

// frames returns the frames of the external run.
func (h *host) frames(t *testing.T) []*frame.Frame {
	t.Helper()
	frames, err := h.log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: externalRun.GetRunId()})
	require.NoError(t, err)
	require.NoError(t, frame.VerifyChain(frames))
	return frames
}

func TestOpenRun_IsIdempotent(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	first := h.open(t, externalRun, "untrusted")
	require.Equal(t, first.String(), h.open(t, externalRun, "untrusted").String())
	frames := h.frames(t)
	require.Len(t, frames, 2)
	require.Equal(t, subject.Open, frames[0].Kind)
	rec, err := frames[0].Record()
	require.NoError(t, err)
	require.True(t, rec.Opened)
	events, err := frames[1].Events()
	require.NoError(t, err)
	require.Equal(t, wire.EventRunStarted, events[0].Type)
	require.Equal(t, wire.Untrusted, events[0].ContentTrust)

	h.anywhere(t, numbered("c1"))
	require.EqualValues(t, 2, h.open(t, externalRun, "untrusted").GetNext(), "a later OpenRun returns the current head")
}

func TestOpenRun_CompletesAnIncompleteOpenRun(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	run := subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}
	_, err := h.log.Append(t.Context(), frame.NewOpen(run, []byte(
		`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"createdAt":"2026-01-31T12:00:00.000Z","engineVersion":1,"opened":true,"noSecrets":true}`)), 0)
	require.NoError(t, err)
	h.open(t, externalRun, "")
	frames := h.frames(t)
	require.Len(t, frames, 2)
	require.Equal(t, []wire.EventType{wire.EventRunStarted}, frames[1].Types)
}

// run.started is the first event of every run, so no envelope is recorded before it.
func TestAccept_FailsForAnIncompleteOpenRun(t *testing.T) {
	t.Parallel()
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			run := subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}
			_, err := h.log.Append(t.Context(), frame.NewOpen(run, []byte(
				`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"createdAt":"2026-01-31T12:00:00.000Z","engineVersion":1,"opened":true,"noSecrets":true}`)), 0)
			require.NoError(t, err)
			_, err = h.Accept(t.Context(), with(h, t, numbered("c1")))
			require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
			require.ErrorContains(t, err, "OpenRun again")
			h.open(t, externalRun, "trusted")
			_, err = h.Accept(t.Context(), with(h, t, numbered("c1")))
			require.NoError(t, err)
			require.Equal(t, []wire.EventType{wire.EventRunStarted}, h.frames(t)[1].Types)
		})
	}
}

func TestCloseRun_CompletesAnIncompleteOpenRun(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	run := subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}
	_, err := h.log.Append(t.Context(), frame.NewOpen(run, []byte(
		`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"createdAt":"2026-01-31T12:00:00.000Z","engineVersion":1,"opened":true}`)), 0)
	require.NoError(t, err)
	_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: externalRun, Status: "cancelled"})
	require.NoError(t, err)
	frames := h.frames(t)
	require.Len(t, frames, 3)
	require.Equal(t, []wire.EventType{wire.EventRunStarted}, frames[1].Types)
	require.Equal(t, []wire.EventType{wire.EventRunCancelled}, frames[2].Types)
}

// Ending a run again with the same status changes nothing, even concurrently, and even
// if its OpenRun did not complete.
func TestCloseRun_ConcurrentCallsEndTheRunOnce(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	for i := range 100 {
		id := fmt.Sprint("theirs-", i)
		_, err := h.log.Append(t.Context(), frame.NewOpen(subject.Run{
			Tenant:     "acme",
			WorkflowID: "agent",
			RunID:      id,
		}, fmt.Appendf(nil,
			`{"runId":%q,"workflowId":"agent","owner":{"tenant":"acme"},"createdAt":"2026-01-31T12:00:00.000Z","engineVersion":1,"opened":true}`, id)), 0)
		require.NoError(t, err)
		errs := make([]error, 6)
		var wg sync.WaitGroup
		for w := range errs {
			wg.Go(func() {
				_, errs[w] = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{
					Run: &runlogv1.RunRef{Tenant: "acme", WorkflowId: "agent", RunId: id}, Status: "cancelled",
				})
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	}
}

func TestOpenRun_IsNotQueuedForDispatchers(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	for _, f := range h.log.Frames() {
		for _, filter := range subject.Queue() {
			require.False(t, strings.HasSuffix(filter, "."+string(f.Kind)), "%s is handed out", f.Kind)
		}
	}
}

func TestOpenRun_RefusesOtherRunsAndInvalidRequests(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.request(t, good) // run-1 is a dispatcher's
	h.open(t, externalRun, "")
	for name, tc := range map[string]struct {
		req  *acceptorv1.OpenRunRequest
		code fault.Code
	}{
		"a dispatcher's run": {
			&acceptorv1.OpenRunRequest{Run: &runlogv1.RunRef{Tenant: "acme", WorkflowId: "wf", RunId: "run-1"}},
			fault.Conflict,
		},
		"another workflow": {
			&acceptorv1.OpenRunRequest{
				Run:       &runlogv1.RunRef{Tenant: "acme", WorkflowId: "other", RunId: "theirs-1"},
				NoSecrets: true,
			},
			fault.Conflict,
		},
		"another boundary": {
			&acceptorv1.OpenRunRequest{Run: externalRun, NoSecrets: true, TrustBoundary: "untrusted"},
			fault.Conflict,
		},
		"with secrets":        {&acceptorv1.OpenRunRequest{Run: externalRun}, fault.Conflict},
		"with run secrets":    {&acceptorv1.OpenRunRequest{Run: externalRun, NoTenantSecrets: true}, fault.Conflict},
		"an unknown boundary": {&acceptorv1.OpenRunRequest{Run: externalRun, TrustBoundary: "maybe"}, fault.ValidationError},
		"no run":              {&acceptorv1.OpenRunRequest{}, fault.ValidationError},
		"an id with a dot": {
			&acceptorv1.OpenRunRequest{Run: &runlogv1.RunRef{Tenant: "acme", WorkflowId: "a", RunId: "a.b"}},
			fault.ValidationError,
		},
		"a bad traceparent": {&acceptorv1.OpenRunRequest{Run: externalRun, Traceparent: "00-x"}, fault.ValidationError},
	} {
		_, err := h.OpenRun(t.Context(), tc.req)
		require.Equal(t, tc.code, fault.CodeOf(err), name)
	}
	_, err := h.redactor.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope: &redactorv1.Scope{RunId: canary}, Secrets: []*redactorv1.Secret{{Id: "k", Value: canary}},
	})
	require.NoError(t, err)
	_, err = h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: &runlogv1.RunRef{
		Tenant:     "acme",
		WorkflowId: "agent",
		RunId:      canary,
	}})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err), "an id cannot be redacted")
}

func TestAccept_WithoutAHeadUsesTheLatest(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	first := h.anywhere(t, numbered("c1"))
	second := h.anywhere(t, numbered("c2"))
	require.EqualValues(t, first.GetHead().GetNext()+1, second.GetHead().GetNext())
	again := h.anywhere(t, numbered("c1"))
	require.Equal(t, first.GetOutcome(), again.GetOutcome())
	require.Len(t, h.frames(t), 4)

	_, err := h.Accept(t.Context(), &acceptorv1.AcceptRequest{
		Run: &runlogv1.RunRef{Tenant: "acme", WorkflowId: "agent", RunId: "ghost"}, NodeId: "ask", Envelope: numbered("c1"),
	})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	_, err = h.Accept(t.Context(), &acceptorv1.AcceptRequest{
		Run:      &runlogv1.RunRef{Tenant: "other", WorkflowId: "agent", RunId: "theirs-1"},
		NodeId:   "ask",
		Envelope: numbered("c1"),
	})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err), "other tenants do not see the run")
}

func TestAccept_WithoutAHeadReturnsOneOutcomeToRacers(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	const racers, ids = 8, 16
	outcomes := make([][]string, ids)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	for range racers {
		wg.Go(func() {
			for i := range ids {
				res, err := h.Accept(t.Context(), &acceptorv1.AcceptRequest{
					Run:      externalRun,
					NodeId:   "ask",
					Envelope: numbered(fmt.Sprint("c", i)),
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				outcomes[i] = append(outcomes[i], string(res.GetOutcome()))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range ids {
		require.Len(t, outcomes[i], racers)
		for _, o := range outcomes[i] {
			require.Equal(t, outcomes[i][0], o)
		}
	}
	require.Len(t, h.frames(t), 2+ids)
}

// clarificationRequest returns a clarification request.
func clarificationRequest(id string) []byte {
	return []byte(`{"type":"clarification.request","schemaVersion":1,"envelopeId":"e","correlationId":"` + id +
		`","payload":{"questions":[{"id":"q","question":"?"}]},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`)
}

func TestAccept_WithoutAHeadCountsClarificationsInTheLog(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *acceptor.Config) { c.Limits.ClarificationRounds = 1 })
	h.open(t, externalRun, "")
	first := h.anywhere(t, clarificationRequest("c1"))
	require.Contains(t, string(first.GetOutcome()), `"accepted"`)
	require.Contains(t, string(h.anywhere(t, clarificationRequest("c2")).GetOutcome()), `"breached"`)
	require.Equal(t, first.GetOutcome(), h.anywhere(t, clarificationRequest("c1")).GetOutcome(), "its own correlationId does not count")
}

func TestAccept_WithoutAHeadCountsClarificationsWithEscapedKind(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *acceptor.Config) { c.Limits.ClarificationRounds = 1 })
	h.open(t, externalRun, "")
	for i, kind := range []string{"clarification.request", `clarification\u002erequest`, `\u0063larification.request`} {
		res := h.anywhere(t, fmt.Appendf(nil, `{"type":"%s","schemaVersion":1,"envelopeId":"e","correlationId":"c%d",`+
			`"payload":{"questions":[{"id":"q","question":"?"}]},"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`, kind, i))
		if i == 0 {
			require.Contains(t, string(res.GetOutcome()), `"accepted"`)
			continue
		}
		require.Contains(t, string(res.GetOutcome()), `"breached"`, kind)
	}
}

// OpenWOP envelope contract §12: trust is never raised. This host has not tracked the
// taint of an external run, with a head or without.
func TestAccept_NeverRaisesTheTrustOfAnExternalRun(t *testing.T) {
	t.Parallel()
	tagged := func(id string) []byte {
		return []byte(strings.Replace(string(numbered(id)), `"source":`, `"contentTrust":"trusted","source":`, 1))
	}
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			h.open(t, externalRun, "untrusted")
			accept := func(req *acceptorv1.AcceptRequest) string {
				req.TrustBoundary = "trusted"
				res, err := h.Accept(t.Context(), req)
				require.NoError(t, err)
				return string(res.GetOutcome())
			}
			require.Contains(t, accept(with(h, t, numbered("c1"))), `"contentTrust":"untrusted"`, "the caller cannot raise it")
			require.Contains(t, accept(with(h, t, tagged("c2"))), `"contentTrust":"untrusted"`, "the envelope's tag cannot raise it")
			approval := with(h, t, tagged("c3"))
			approval.ApprovalContext = true
			require.Contains(t, accept(approval), `"reason":"untrusted_content_blocks_approval"`)
			for _, f := range h.frames(t)[1:] {
				events, err := f.Events()
				require.NoError(t, err)
				for _, e := range events {
					require.Equal(t, wire.Untrusted, e.ContentTrust)
				}
			}
		})
	}
}

// OpenWOP envelope contract §12: in a run of this host the envelope's tag is honoured,
// since the dispatcher derived it from the taint of the node's inputs.
func TestAccept_HonoursTheTagOfADispatchersEnvelope(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	req := h.request(t, strings.Replace(good, `"source":`, `"contentTrust":"trusted","source":`, 1))
	req.TrustBoundary = "untrusted"
	res, err := h.Accept(t.Context(), req)
	require.NoError(t, err)
	require.Contains(t, string(res.GetOutcome()), `"contentTrust":"trusted"`)
}

// OpenWOP envelope contract §12: without a tag the recorded boundary of the run decides,
// not the caller's.
func TestAccept_UsesTheRecordedBoundaryOfADispatchersRun(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "trusted", "untrusted"} {
		h := start(t, nil)
		first := frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "agent", RunID: "theirs-1"}, []byte(
			`{"runId":"theirs-1","workflowId":"agent","owner":{"tenant":"acme"},"trustBoundary":"untrusted"}`))
		pos, err := h.log.Append(t.Context(), first, 0)
		require.NoError(t, err)
		first.Pos = pos
		req := atFrame(first, numbered("c1"))
		req.TrustBoundary = said
		res, err := h.Accept(t.Context(), req)
		require.NoError(t, err)
		require.Contains(t, string(res.GetOutcome()), `"contentTrust":"untrusted"`, said)
	}
}

// The workflow is part of a frame's subject. A caller cannot change it.
func TestAccept_RefusesAnotherWorkflow(t *testing.T) {
	t.Parallel()
	for name, with := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, nil)
			h.open(t, externalRun, "")
			req := with(h, t, numbered("c1"))
			req.Run = &runlogv1.RunRef{Tenant: "acme", WorkflowId: "other", RunId: "theirs-1"}
			_, err := h.Accept(t.Context(), req)
			require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
			require.Len(t, h.frames(t), 2)
		})
	}
}

// Each attempt counts again, including concurrent requests.
func TestAccept_WithoutAHeadEnforcesTheClarificationLimit(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	const racers = 20
	statuses := make([]accept.Status, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			statuses[i] = accept.StatusOf(h.anywhere(t, clarificationRequest(strconv.Itoa(i))).GetOutcome())
		})
	}
	wg.Wait()
	count := map[accept.Status]int{}
	for _, s := range statuses {
		count[s]++
	}
	require.Equal(t, map[accept.Status]int{accept.Accepted: 3, accept.Breached: racers - 3}, count)
}

// OpenWOP envelope contract §26 case 14: the caller's node_id is an id, too.
func TestAccept_RefusesASecretInTheNode(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	h.register(t, externalRun.GetRunId(), "k", canary)
	res, err := h.Accept(t.Context(), &acceptorv1.AcceptRequest{
		Run:      externalRun,
		NodeId:   canary,
		Envelope: numbered("c1"),
	})
	require.NoError(t, err)
	require.Contains(t, string(res.GetOutcome()), `"invalid_envelope_shape: an id holds a secret"`)
	for _, f := range h.frames(t) {
		require.NotContains(t, string(f.Body), canary)
	}
}

func TestCloseRun_EndsTheRunOnce(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]wire.Status{
		"completed": wire.StatusCompleted,
		"failed":    wire.StatusFailed,
		"cancelled": wire.StatusCancelled,
	} {
		h := start(t, nil)
		h.open(t, externalRun, "")
		recorded := h.anywhere(t, numbered("c1"))
		req := &acceptorv1.CloseRunRequest{Run: externalRun, Status: status, ErrorCode: "x.y", Message: "because"}
		first, err := h.CloseRun(t.Context(), req)
		require.NoError(t, err)
		again, err := h.CloseRun(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, first.String(), again.String())

		frames := h.frames(t)
		rec, err := frames[0].Record()
		require.NoError(t, err)
		state := runstate.New(rec)
		for _, f := range frames {
			events, err := f.Events()
			require.NoError(t, err)
			for _, e := range events {
				state.Apply(e)
			}
		}
		require.Equal(t, want, state.Status)

		_, err = h.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: externalRun, NodeId: "ask", Envelope: numbered("c2")})
		require.Equal(t, fault.RunTerminal, fault.CodeOf(err))
		require.Equal(t, recorded.GetOutcome(), h.anywhere(t, numbered("c1")).GetOutcome(), "a recorded outcome can still be looked up")
		_, err = h.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: externalRun, NoSecrets: true})
		require.Equal(t, fault.RunTerminal, fault.CodeOf(err))
	}
}

func TestCloseRun_RefusesOtherRunsAndInvalidRequests(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	for name, tc := range map[string]struct {
		req  *acceptorv1.CloseRunRequest
		code fault.Code
	}{
		"an unknown run": {
			&acceptorv1.CloseRunRequest{
				Run:    &runlogv1.RunRef{Tenant: "acme", WorkflowId: "agent", RunId: "ghost"},
				Status: "completed",
			},
			fault.RunNotFound,
		},
		"an unknown status": {&acceptorv1.CloseRunRequest{Run: externalRun, Status: "done"}, fault.ValidationError},
		"a failure without a code": {
			&acceptorv1.CloseRunRequest{Run: externalRun, Status: "failed", Message: "m"},
			fault.ValidationError,
		},
	} {
		_, err := h.CloseRun(t.Context(), tc.req)
		require.Equal(t, tc.code, fault.CodeOf(err), name)
	}
	_, err := h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: externalRun, Status: "completed"})
	require.NoError(t, err)
	_, err = h.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: externalRun, Status: "cancelled"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
}
