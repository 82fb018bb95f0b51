package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/token"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/interrupttoken"
	"waybill.dev/waybill/services/gateway/webhook"
)

// host is a fake host with a run.
type host struct {
	dispatcherv1.DispatcherClient
	eventlogv1.EventLogClient
	run      *eventlogv1.GetRunResponse
	question *dispatcherv1.GetInterruptResponse
	err      error
}

func (h *host) GetRun(context.Context, *eventlogv1.GetRunRequest, ...grpc.CallOption) (*eventlogv1.GetRunResponse, error) {
	return h.run, h.err
}

func (h *host) GetInterrupt(_ context.Context, r *dispatcherv1.GetInterruptRequest, _ ...grpc.CallOption) (*dispatcherv1.GetInterruptResponse, error) {
	if r.GetTenant() != "acme" || r.GetRunId() != "run_1" || r.GetNodeId() != "gate" {
		return nil, errors.New("another question")
	}
	return h.question, nil
}

var (
	now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at  = interrupt.Origin{RunID: "run_1", NodeID: "gate"}
	rec = wire.RunRecord{
		RunID:       "run_1",
		WorkflowID:  "flow",
		Owner:       wire.Owner{Tenant: "acme", Workspace: "ws"},
		CallbackURL: "https://answers.example/?run=1",
	}
)

// asks returns a host with an open gate, and the gate's event.
func asks(t *testing.T, typeID, config string, trust wire.Trust) (services *host, requested json.RawMessage) {
	t.Helper()
	r, wrong := interrupt.From(typeID, at, json.RawMessage(config))
	require.Empty(t, wrong)
	p, drafts := interrupt.Open(at, r, now, trust)
	event, err := json.Marshal(drafts[1].Place("run_1", 3, now))
	require.NoError(t, err)
	return &host{
		run:      &eventlogv1.GetRunResponse{Status: "waiting-approval", LastSequence: 4},
		question: &dispatcherv1.GetInterruptResponse{RequestedAt: p.RequestedAt},
	}, event
}

func questions(t *testing.T, h *host, public string) (*webhook.CallbackQuestions, *interrupttoken.Tokens) {
	t.Helper()
	tokens, err := interrupttoken.New(token.Keys{1: []byte(strings.Repeat("k", token.MinKey))})
	require.NoError(t, err)
	return &webhook.CallbackQuestions{
		Dispatcher: h,
		EventLog:   h,
		Tokens:     tokens,
		PublicURL:  public,
		Clock:      func() time.Time { return now },
	}, tokens
}

type said struct {
	Status, ContentTrust, ResolveURL string
	Interrupt                        struct{ InterruptID, InterruptToken, ExpiresAt string }
}

const gate = `{"title":"T","actions":["accept"]}`

func TestAsk_HasTheInterruptOfTheSnapshot(t *testing.T) {
	t.Parallel()
	h, event := asks(t, interrupt.TypeApprovalGate, gate, wire.Untrusted)
	q, tokens := questions(t, h, "https://waybill.example")
	doc, key, err := q.RenderQuestion(t.Context(), &rec, 3, event)
	require.NoError(t, err)
	var s said
	require.NoError(t, json.Unmarshal(doc, &s))
	require.Equal(t, "run_1:"+s.Interrupt.InterruptID, key)
	require.Equal(t, "https://waybill.example/v1/interrupts/"+s.Interrupt.InterruptToken, s.ResolveURL)
	claims, err := tokens.Open(s.Interrupt.InterruptToken, interrupttoken.Resolve, now)
	require.NoError(t, err)
	require.Equal(t, interrupttoken.Claims{
		Tenant:      "acme",
		RunID:       "run_1",
		NodeID:      "gate",
		InterruptID: s.Interrupt.InterruptID,
		ExpiresAt:   now.Add(7 * 24 * time.Hour),
		Intent:      interrupttoken.Resolve,
	}, claims)
	require.JSONEq(t, `{"runId":"run_1","workflowId":"flow","workspaceId":"ws","type":"interrupt.requested","sequence":3,"status":"waiting-approval","contentTrust":"untrusted",
		"resolveUrl":"`+s.ResolveURL+`","interrupt":{"kind":"approval","nodeId":"gate","interruptId":"`+s.Interrupt.InterruptID+`","requestedAt":"2026-05-01T12:00:00.000Z",
		"interruptToken":"`+s.Interrupt.InterruptToken+`","expiresAt":"2026-05-08T12:00:00.000Z","payload":{"kind":"approval","key":"run_1:gate:0","data":{"artifactId":"run_1:gate","artifactType":"approval","title":"T","actions":["accept"]}}}}`, string(doc))
}

func TestAsk_LimitsTheTokenToTheQuestion(t *testing.T) {
	t.Parallel()
	h, event := asks(t, interrupt.TypeApprovalGate, `{"title":"T","actions":["accept"],"timeoutSec":60}`, wire.Trusted)
	q, _ := questions(t, h, "")
	doc, _, err := q.RenderQuestion(t.Context(), &rec, 3, event)
	require.NoError(t, err)
	var s said
	require.NoError(t, json.Unmarshal(doc, &s))
	require.Equal(t, "2026-05-01T12:01:00.000Z", s.Interrupt.ExpiresAt)
	require.Empty(t, s.ResolveURL, "the host does not know where it is")
}

// OpenWOP host contract §6.5, last row.
func TestAsk_HasNoTokenIfACredentialIsNeeded(t *testing.T) {
	t.Parallel()
	h, event := asks(t, interrupt.TypeApprovalGate, `{"title":"T","actions":["accept"],"profile":"openwop-interrupt-auth-required"}`, wire.Trusted)
	q, _ := questions(t, h, "https://waybill.example")
	doc, key, err := q.RenderQuestion(t.Context(), &rec, 3, event)
	require.NoError(t, err)
	require.NotEmpty(t, key)
	require.NotContains(t, string(doc), "interruptToken")
	require.NotContains(t, string(doc), "expiresAt")
	require.Contains(t, string(doc), `"resolveUrl":"https://waybill.example/v1/runs/run_1/interrupts/gate"`)
}

// No callback is sent for an interrupt that can no longer be answered.
func TestAsk_IsSilentOnceTheQuestionIsClosed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*host, *webhook.CallbackQuestions){
		"answered":          func(h *host, _ *webhook.CallbackQuestions) { h.question.Resolved = true },
		"the run has ended": func(h *host, _ *webhook.CallbackQuestions) { h.question.Gone = true },
		"the run was ended": func(h *host, _ *webhook.CallbackQuestions) { h.run.Status = "cancelled" },
		"the run is to end": func(h *host, _ *webhook.CallbackQuestions) { h.run.Status = "cancelling" },
		"its time is over": func(_ *host, q *webhook.CallbackQuestions) {
			q.Clock = func() time.Time { return now.Add(time.Minute) }
		},
		"long after its end": func(_ *host, q *webhook.CallbackQuestions) { q.Clock = func() time.Time { return now.Add(time.Hour) } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, event := asks(t, interrupt.TypeApprovalGate, `{"title":"T","actions":["accept"],"timeoutSec":60}`, wire.Trusted)
			q, _ := questions(t, h, "")
			change(h, q)
			doc, _, err := q.RenderQuestion(t.Context(), &rec, 3, event)
			require.NoError(t, err)
			require.Nil(t, doc)
		})
	}
}

// A question in a history that is still being copied may be answered later in it.
func TestAsk_WaitsForTheHistoryOfAFork(t *testing.T) {
	t.Parallel()
	h, event := asks(t, interrupt.TypeApprovalGate, gate, wire.Trusted)
	q, _ := questions(t, h, "")
	fork := rec
	fork.Fork = &wire.Fork{SourceRunID: "run_0", Mode: wire.ForkBranch, FromSeq: 6}
	_, _, err := q.RenderQuestion(t.Context(), &fork, 3, event)
	require.Error(t, err)
	h.run.LastSequence = 5
	doc, _, err := q.RenderQuestion(t.Context(), &fork, 3, event)
	require.NoError(t, err)
	require.NotNil(t, doc)
}

func TestAsk_ReportsReadErrors(t *testing.T) {
	t.Parallel()
	h, event := asks(t, interrupt.TypeApprovalGate, gate, wire.Trusted)
	q, _ := questions(t, h, "")
	for _, damaged := range []string{`{`, `{}`, `{"payload":{"kind":"x"}}`} {
		_, _, err := q.RenderQuestion(t.Context(), &rec, 3, json.RawMessage(damaged))
		require.Error(t, err, damaged)
	}
	h.err = errors.New("the read model is behind")
	_, _, err := q.RenderQuestion(t.Context(), &rec, 3, event)
	require.ErrorIs(t, err, h.err)
}

// An escalated question is sent again with its current state and a new key. With the same key the
// receiver would drop it as a repeat.
func TestAsk_SendsTheQuestionAgainAtAnotherLevel(t *testing.T) {
	t.Parallel()
	const config = `{"title":"T","actions":["accept"],"timeoutSec":60,"escalation":[{"afterSec":1}]}`
	h, event := asks(t, interrupt.TypeApprovalGate, config, wire.Untrusted)
	q, _ := questions(t, h, "")
	doc, first, err := q.RenderQuestion(t.Context(), &rec, 3, event)
	require.NoError(t, err)
	require.NotContains(t, string(doc), `"level"`)

	r, _ := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(config))
	p, _ := interrupt.Open(at, r, now, wire.Untrusted)
	draft, ok := p.Escalate(now.Add(time.Second))
	require.True(t, ok)
	escalation, err := json.Marshal(draft.Place("run_1", 5, now.Add(time.Second)))
	require.NoError(t, err)
	h.question.Payload, err = json.Marshal(r)
	require.NoError(t, err)
	h.question.Level, h.question.EscalatedAt = 1, "2026-05-01T12:00:01.000Z"
	doc, again, err := q.RenderQuestion(t.Context(), &rec, 5, escalation)
	require.NoError(t, err)
	require.Equal(t, first+":1", again)
	for _, member := range []string{
		`"type":"waybill.approval.escalated","sequence":5`, `"contentTrust":"untrusted"`,
		`"interruptToken":"`, `"title":"T"`, `"escalation":{"level":1,"at":"2026-05-01T12:00:01.000Z"}`,
	} {
		require.Contains(t, string(doc), member)
	}
	doc, late, err := q.RenderQuestion(t.Context(), &rec, 3, event)
	require.NoError(t, err)
	require.Equal(t, first, late)
	require.Contains(t, string(doc), `"level":1`, "a late callback has the current level")

	h.question.Resolved = true
	doc, _, err = q.RenderQuestion(t.Context(), &rec, 5, escalation)
	require.NoError(t, err)
	require.Nil(t, doc)
	_, _, err = q.RenderQuestion(t.Context(), &rec, 5, json.RawMessage(`{"type":"waybill.approval.escalated","payload":{"level":1}}`))
	require.Error(t, err)
}
