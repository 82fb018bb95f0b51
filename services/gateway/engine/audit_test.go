package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/kv/memory"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// book is an audit log of 120 entries that records its calls.
type book struct {
	tenant  string
	window  audit.Window
	entries []string
	err     error
}

const bookLength = 120

func (b *book) Record(_ context.Context, tenant string, entries ...audit.Entry) error {
	for _, e := range entries {
		details, err := json.Marshal(e.Details)
		if err != nil {
			return err
		}
		b.entries = append(b.entries, fmt.Sprintf("%s %s %s %s", tenant, e.Action, e.Target, details))
	}
	return b.err
}

func (b *book) Verify(_ context.Context, tenant string, w audit.Window) (audit.Result, error) {
	b.tenant, b.window = tenant, w
	return audit.Result{
		FromSeq: 1, ToSeq: 2, CheckpointsValid: true,
		Checkpoints: []audit.Checkpoint{{ID: "c", AtSequence: 3, MerkleRoot: "m", Signature: "s"}},
		Anomalies:   []audit.Anomaly{{AtSeq: 4, ExpectedPrevHash: "e", ActualPrevHash: "a"}},
	}, b.err
}

func (b *book) Page(_ context.Context, tenant string, from int64, limit int) (page [][]byte, more bool, err error) {
	b.tenant = tenant
	for n := from; n < bookLength && len(page) < limit; n++ {
		page = append(page, fmt.Append(nil, n))
	}
	return page, from+int64(len(page)) < bookLength, b.err
}

func (b *book) End(_ context.Context, tenant string) (int64, error) {
	b.tenant = tenant
	return bookLength, b.err
}

// withBook returns the service over fakes, with an audit log.
func withBook(t *testing.T) (*rig, *book) {
	t.Helper()
	r, b := newRig(t), &book{}
	r.Service = engine.New(engine.Config{MaxStreams: 1}, engine.Deps{
		Discovery:   document{},
		Clients:     engine.Clients{Dispatcher: r.dispatcher, EventLog: r.log},
		Audit:       engine.Audit{Recorder: b, AuditLog: b},
		Idempotency: idempotency.New(memory.New(), nil),
	})
	return r, b
}

func TestAudit_IsNotFoundWhenDisabled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.VerifyAuditLog(as(t, liveKey), &openwopv1.VerifyAuditLogRequest{})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	_, err = r.ListAuditEntries(as(t, liveKey), &hostv1.ListAuditEntriesRequest{})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

func TestVerifyAuditLog_ReturnsTheCallersLog(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	res, err := r.VerifyAuditLog(as(t, betaKey), &openwopv1.VerifyAuditLogRequest{
		FromSeq: proto.Int64(5),
		ToSeq:   proto.Int64(5),
	})
	require.NoError(t, err)
	require.Equal(t, "beta", b.tenant)
	require.EqualValues(t, 5, b.window.FromSeq)
	require.EqualValues(t, 5, *b.window.ToSeq)
	require.False(t, res.GetChainValid())
	require.True(t, res.GetCheckpointsValid())
	require.Equal(t, "m", res.GetCheckpoints()[0].GetMerkleRoot())
	require.Equal(t, "a", res.GetAnomalies()[0].GetActualPrevHash())
	_, err = r.VerifyAuditLog(as(t, liveKey), &openwopv1.VerifyAuditLogRequest{})
	require.NoError(t, err)
	require.Nil(t, b.window.ToSeq)
}

func TestVerifyAuditLog_RejectsAnInvalidWindow(t *testing.T) {
	t.Parallel()
	r, _ := withBook(t)
	for _, w := range [][2]int64{{-1, 1}, {2, 1}, {0, -1}, {-5, -6}, {math.MinInt64, 0}} {
		_, err := r.VerifyAuditLog(as(t, liveKey), &openwopv1.VerifyAuditLogRequest{FromSeq: &w[0], ToSeq: &w[1]})
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", w)
	}
}

func TestListAuditEntries_PagesToTheEnd(t *testing.T) {
	t.Parallel()
	r, _ := withBook(t)
	req := &hostv1.ListAuditEntriesRequest{Limit: proto.Int32(33), FromSeq: proto.Int64(7)}
	var all []string
	for {
		res, err := r.ListAuditEntries(as(t, liveKey), req)
		require.NoError(t, err)
		for _, e := range res.GetEntries() {
			all = append(all, string(e.GetJson()))
		}
		if res.NextCursor == nil {
			break
		}
		req = &hostv1.ListAuditEntriesRequest{Limit: proto.Int32(33), Cursor: res.NextCursor}
	}
	require.Len(t, all, bookLength-7)
	require.Equal(t, "7", all[0])
	for _, bad := range []*hostv1.ListAuditEntriesRequest{
		{Limit: proto.Int32(0)},
		{Limit: proto.Int32(201)},
		{Cursor: proto.String("?")},
		{Cursor: proto.String("eA")},
		{Cursor: proto.String("LTE")},
		{FromSeq: proto.Int64(-1)},
		{FromSeq: proto.Int64(1), Cursor: proto.String("MQ")},
		{FromSeq: proto.Int64(1), NewestFirst: proto.Bool(true)},
	} {
		_, err := r.ListAuditEntries(as(t, liveKey), bad)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", bad)
	}
}

func TestListAuditEntries_PagesFromTheNewest(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	req := &hostv1.ListAuditEntriesRequest{Limit: proto.Int32(50), NewestFirst: proto.Bool(true)}
	var all []string
	for pages := 0; ; pages++ {
		require.Less(t, pages, 3)
		res, err := r.ListAuditEntries(as(t, betaKey), req)
		require.NoError(t, err)
		for _, e := range res.GetEntries() {
			all = append(all, string(e.GetJson()))
		}
		if res.NextCursor == nil {
			break
		}
		req.Cursor = res.NextCursor
	}
	require.Equal(t, "beta", b.tenant)
	require.Len(t, all, bookLength)
	require.Equal(t, []string{"119", "0"}, []string{all[0], all[bookLength-1]})
}

// Acknowledged actions are in the audit log. An action that cannot be recorded is not acknowledged.
func TestRecord_ComesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	r.dispatcher.cancel = states(map[string]string{"run_1": "running", "run_2": "completed"})
	r.dispatcher.put = func(*dispatcherv1.PutWorkflowRequest) (*dispatcherv1.PutWorkflowResponse, error) {
		return &dispatcherv1.PutWorkflowResponse{WorkflowId: "wf", Version: "1", Digest: "d"}, nil
	}
	cancel := func(id string) error {
		_, err := r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{RunId: id, Reason: proto.String("stuck")})
		return err
	}
	require.NoError(t, cancel("run_1"))
	require.NoError(t, cancel("run_2"))
	require.Error(t, cancel("run_3"))
	_, err := r.PutWorkflow(as(t, liveKey), &hostv1.PutWorkflowRequest{Definition: doc(`{}`)})
	require.NoError(t, err)
	require.Equal(t, []string{
		`acme run.cancelled runs/run_1 {"alreadyTerminal":false,"reason":"stuck","status":"cancelling"}`,
		`acme run.cancelled runs/run_2 {"alreadyTerminal":true,"reason":"stuck","status":"completed"}`,
	}, b.entries[:2])
	require.Contains(t, b.entries[2], "acme workflow.registered workflows/wf ")

	b.err = fault.New(fault.ServiceUnavailable, "away")
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(cancel("run_1")))
	_, err = r.PutWorkflow(as(t, liveKey), &hostv1.PutWorkflowRequest{Definition: doc(`{}`)})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	res, err := r.BulkCancelRuns(as(t, liveKey), &openwopv1.BulkCancelRunsRequest{RunIds: []string{"run_1"}})
	require.NoError(t, err)
	require.False(t, res.GetResults()[0].GetOk())
}

func (*dispatcher) PauseRun(context.Context, *dispatcherv1.PauseRunRequest, ...grpc.CallOption) (*dispatcherv1.PauseRunResponse, error) {
	return &dispatcherv1.PauseRunResponse{}, nil
}

func (*dispatcher) ResumeRun(context.Context, *dispatcherv1.ResumeRunRequest, ...grpc.CallOption) (*dispatcherv1.ResumeRunResponse, error) {
	return &dispatcherv1.ResumeRunResponse{}, nil
}

func (d *dispatcher) ResolveInterrupt(_ context.Context, r *dispatcherv1.ResolveInterruptRequest, _ ...grpc.CallOption) (*dispatcherv1.ResolveInterruptResponse, error) {
	d.answers++
	d.answered = r
	if d.answering != nil {
		if err := d.answering(); err != nil {
			return nil, err
		}
	}
	out := &dispatcherv1.ResolveInterruptResponse{
		NodeId:  r.GetNodeId(),
		Status:  "waiting-approval",
		Kind:    "approval",
		Outcome: "accepted",
		Votes:   &dispatcherv1.Votes{Accepts: 1, Required: 2},
	}
	if r.GetUser() != "" {
		out.Standing = &dispatcherv1.Standing{Groups: r.GetGroups(), Roles: r.GetRoles()}
	}
	if strings.Contains(string(r.GetResumeValue()), `"override":true`) {
		out.Standing = &dispatcherv1.Standing{Override: "chief"}
	}
	return out, nil
}

// GetInterrupt finds every question; those of "closed" are answered.
func (*dispatcher) GetInterrupt(_ context.Context, r *dispatcherv1.GetInterruptRequest, _ ...grpc.CallOption) (*dispatcherv1.GetInterruptResponse, error) {
	if r.GetNodeId() == "nowhere" {
		return nil, fault.New(fault.InterruptNotFound, "none")
	}
	return &dispatcherv1.GetInterruptResponse{
		InterruptId: "int_1",
		Payload:     []byte(`{"kind":"approval"}`),
		Resolved:    r.GetNodeId() == "closed",
	}, nil
}

// tokens open as claims of the tenant that they name.
type tokens struct{}

func (tokens) Sign(c interrupttoken.Claims) (string, error) { return "token of " + c.NodeID, nil }

func (tokens) Open(text string, _ interrupttoken.Intent, _ time.Time) (interrupttoken.Claims, error) {
	return interrupttoken.Claims{Tenant: text, RunID: "run_1", NodeID: "gate"}, nil
}

// The audit log redacts entries with the tenant's secrets only. Secrets of the run must be redacted
// before, in the entry and in the run's event.
func TestRecord_RedactsReasonsLikeTheRun(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	r.dispatcher.cancel = states(map[string]string{"run_1": "completed", "run_2": "running"})
	reason := proto.String("for " + hunted)
	_, err := r.PauseRun(as(t, liveKey), &openwopv1.PauseRunRequest{RunId: "run_1", Reason: reason})
	require.NoError(t, err)
	_, err = r.ResumeRun(as(t, liveKey), &openwopv1.ResumeRunRequest{RunId: "run_1", Reason: reason})
	require.NoError(t, err)
	_, err = r.CancelRun(as(t, liveKey), &openwopv1.CancelRunRequest{RunId: "run_1", Reason: reason})
	require.NoError(t, err)
	_, err = r.BulkCancelRuns(as(t, liveKey), &openwopv1.BulkCancelRunsRequest{RunIds: []string{"run_2"}, Reason: reason})
	require.NoError(t, err)
	require.Equal(t, []string{
		`acme run.paused runs/run_1 {"drainPolicy":"drain-current-node","reason":"for [REDACTED:of acme/run_1]"}`,
		`acme run.resumed runs/run_1 {"reason":"for [REDACTED:of acme/run_1]"}`,
		`acme run.cancelled runs/run_1 {"alreadyTerminal":true,"reason":"for [REDACTED:of acme/run_1]","status":"completed"}`,
		`acme run.cancelled runs/run_2 {"alreadyTerminal":false,"reason":"for [REDACTED:of acme/run_2]","status":"cancelling"}`,
	}, b.entries)
	for _, c := range r.dispatcher.cancels {
		require.Equal(t, "for [REDACTED:of acme/"+c.GetRunId()+"]", c.GetReason())
	}
}

// OpenWOP host contract §6.3, §10.7: the person who decided, without the text of the answer.
func TestRecord_HasDecisionsOfPeople(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	r.Service = engine.New(engine.Config{MaxStreams: 1}, engine.Deps{
		Discovery: document{},
		Clients:   engine.Clients{Dispatcher: r.dispatcher},
		Audit:     engine.Audit{Recorder: b},
		Tokens:    tokens{},
		Clock:     time.Now,
	})
	value := doc(`{"action":"accept","comment":"what was written"}`)
	pause := func() error {
		_, err := r.PauseRun(as(t, liveKey), &openwopv1.PauseRunRequest{RunId: "run_1", Reason: proto.String("wait")})
		return err
	}
	resume := func() error {
		_, err := r.ResumeRun(as(t, liveKey), &openwopv1.ResumeRunRequest{RunId: "run_1"})
		return err
	}
	byRun := func() error {
		_, err := r.ResolveInterruptByRun(as(t, liveKey), &openwopv1.ResolveInterruptByRunRequest{
			RunId:       "run_1",
			NodeId:      "gate",
			ResumeValue: value,
		})
		return err
	}
	byToken := func() error {
		_, err := r.ResolveInterruptByToken(t.Context(), &openwopv1.ResolveInterruptByTokenRequest{Token: "beta", ResumeValue: value})
		return err
	}
	acts := []func() error{pause, resume, byRun, byToken}
	for _, act := range acts {
		require.NoError(t, act())
	}
	const answer = `{"interruptId":"int_1","kind":"approval","nodeId":"gate","outcome":"accepted","status":"waiting-approval","votes":{"accepts":1,"rejects":0,"required":2}}`
	require.Equal(t, []string{
		`acme run.paused runs/run_1 {"drainPolicy":"drain-current-node","reason":"wait"}`,
		`acme run.resumed runs/run_1 {"reason":""}`,
		`acme interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate"}`,
		"acme interrupt.answered runs/run_1 " + answer,
		`beta interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate"}`,
		"beta interrupt.answered runs/run_1 " + answer,
	}, b.entries)
	b.err = fault.New(fault.ServiceUnavailable, "away")
	for _, act := range acts {
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(act()))
	}
}

// RFC 0104: the gateway determines the caller's groups and roles, and records the one that allowed the
// decision.
func TestRecord_HasTheGroupOrRoleOfADecision(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	_, err := r.ResolveInterruptByRun(as(t, opsKey), &openwopv1.ResolveInterruptByRunRequest{
		RunId:       "run_1",
		NodeId:      "gate",
		ResumeValue: doc(`{"action":"accept"}`),
	})
	require.NoError(t, err)
	require.Len(t, b.entries, 2)
	require.Contains(t, b.entries[1], `"standing":{"groups":["ops"],"listed":false,"roles":["releaser"]}`)
}

// An answer to a question that the node does not ask any more resolves nothing.
func TestResolve_OnlyTheQuestionThatWasRead(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	answer := func(id string) error {
		_, err := r.ResolveInterruptByRun(as(t, liveKey, engine.MetaInterrupt, id), &openwopv1.ResolveInterruptByRunRequest{
			RunId: "run_1", NodeId: "gate", ResumeValue: doc(`{"action":"accept"}`),
		})
		return err
	}
	require.Equal(t, fault.InterruptResolved, fault.CodeOf(answer("int_0")))
	require.Equal(t, fault.ValidationError, fault.CodeOf(answer("")))
	require.Zero(t, r.dispatcher.answers)
	require.Empty(t, b.entries)
	require.NoError(t, answer("int_1"))
	require.Equal(t, "int_1", r.dispatcher.answered.GetInterruptId())
}

// OpenWOP host contract §6.3: an override has an entry of its own, with its reason.
func TestRecord_HasOverridesAndReasons(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	override := func() error {
		_, err := r.ResolveInterruptByRun(as(t, opsKey), &openwopv1.ResolveInterruptByRunRequest{
			RunId:       "run_1",
			NodeId:      "gate",
			ResumeValue: doc(`{"action":"accept","override":true,"reason":"for ` + hunted + `"}`),
		})
		return err
	}
	require.NoError(t, override())
	require.Equal(t, []string{
		`acme interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate","override":{"reason":"for [REDACTED:of acme/run_1]"}}`,
		`acme approval.overridden runs/run_1 {"interruptId":"int_1","nodeId":"gate","outcome":"accepted","reason":"for [REDACTED:of acme/run_1]","role":"chief"}`,
		`acme interrupt.answered runs/run_1 {"interruptId":"int_1","kind":"approval","nodeId":"gate","outcome":"accepted","status":"waiting-approval","votes":{"accepts":1,"rejects":0,"required":2}}`,
	}, b.entries)
	b.err = fault.New(fault.ServiceUnavailable, "away")
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(override()))
	require.Equal(t, 1, r.dispatcher.answers, "what cannot be recorded does not count")
}

// An answer is in the audit log before it takes effect, even if the gateway dies then. A rejected
// answer has no entry.
func TestRecord_HasAnAnswerBeforeItsEffect(t *testing.T) {
	t.Parallel()
	r, b := withBook(t)
	var before []string
	r.dispatcher.answering = func() error { before = slices.Clone(b.entries); return nil }
	answer := func(node string) error {
		_, err := r.ResolveInterruptByRun(as(t, liveKey), &openwopv1.ResolveInterruptByRunRequest{
			RunId:       "run_1",
			NodeId:      node,
			ResumeValue: doc(`{"action":"accept"}`),
		})
		return err
	}
	require.NoError(t, answer("gate"))
	require.Equal(t, []string{`acme interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate"}`}, before)

	require.Equal(t, "int_1", r.dispatcher.answered.GetInterruptId(), "it answers the question in the log, not a newer one")

	b.entries = nil
	require.Equal(t, fault.InterruptNotFound, fault.CodeOf(answer("nowhere")))
	r.dispatcher.answering = func() error { return fault.New(fault.InterruptResolved, "answered") }
	require.Equal(t, fault.InterruptResolved, fault.CodeOf(answer("closed")))
	require.Empty(t, b.entries)

	for code, want := range map[fault.Code][]string{
		fault.Forbidden: {
			`acme interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate"}`,
			`acme interrupt.refused runs/run_1 {"code":"forbidden","interruptId":"int_1","nodeId":"gate"}`,
		},
		fault.PayloadTooLarge: {
			`acme interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate"}`,
			`acme interrupt.refused runs/run_1 {"code":"payload_too_large","interruptId":"int_1","nodeId":"gate"}`,
		},
		fault.ServiceUnavailable: {`acme interrupt.answering runs/run_1 {"interruptId":"int_1","nodeId":"gate"}`}, // it may have counted
	} {
		b.entries = nil
		r.dispatcher.answering = func() error { return fault.New(code, "no") }
		require.Equal(t, code, fault.CodeOf(answer("gate")))
		require.Equal(t, want, b.entries)
	}
}
