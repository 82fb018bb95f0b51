package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

// inbox are questions of a tenant.
var inbox = map[string]string{
	"open":      `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"]}}}`,
	"event":     `{"kind":"external-event","payload":{"kind":"external-event","data":{}}}`,
	"ops":       `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approverGroupRefs":["ops"]}}}`,
	"releaser":  `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approverRoleRefs":["releaser"]}}}`,
	"user":      `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approversList":["u-1"]}}}`,
	"another":   `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approversList":["u-2"]}}}`,
	"hr":        `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approverGroupRefs":["hr"]}}}`,
	"later":     `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approverGroupRefs":["hr"],"escalation":[{"afterSec":1,"approverGroupRefs":["ops"]}]}}}`,
	"escalated": `{"kind":"approval","payload":{"kind":"approval","data":{"actions":["accept"],"approverGroupRefs":["hr"],"escalation":[{"afterSec":1,"approverGroupRefs":["ops"]}]}},"escalation":{"level":1,"at":""}}`,
}

func (l *eventLog) ListInterrupts(_ context.Context, r *eventlogv1.ListInterruptsRequest, _ ...grpc.CallOption) (*eventlogv1.ListInterruptsResponse, error) {
	if r.GetAnsweredOn() != "" {
		return &eventlogv1.ListInterruptsResponse{Interrupts: []*eventlogv1.OpenInterrupt{{
			RunId: "done", Interrupt: json.RawMessage(inbox["open"]),
			Answer: &eventlogv1.InterruptAnswer{At: r.GetAnsweredOn(), By: "ada", Outcome: "accept", Value: []byte(`{"action":"accept"}`)},
		}}}, nil
	}
	out := &eventlogv1.ListInterruptsResponse{NextCursor: fmt.Sprintf("%s %d %s %s %s", r.GetTenant(), r.GetLimit(), r.GetCursor(), r.GetWorkflowId(), r.GetKind())}
	for id, doc := range inbox {
		out.Interrupts = append(out.Interrupts, &eventlogv1.OpenInterrupt{
			RunId:      id,
			WorkflowId: "flow",
			Status:     "waiting-approval",
			Interrupt:  json.RawMessage(doc),
		})
	}
	return out, nil
}

func (l *eventLog) CountInterrupts(_ context.Context, r *eventlogv1.CountInterruptsRequest, _ ...grpc.CallOption) (*eventlogv1.CountInterruptsResponse, error) {
	if r.GetTenant() == "" || r.GetPrincipal() == "" || !slices.Contains(r.GetGroups(), "ops") {
		return nil, fmt.Errorf("the caller is missing: %v", r)
	}
	return &eventlogv1.CountInterruptsResponse{Open: 9, Answerable: 6, DueSoon: 1}, nil
}

// The open interrupts of the tenant, or those that the caller may answer.
func TestListInterrupts_ListsWhatTheCallerMayAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := func(key string, req *hostv1.ListInterruptsRequest) (out []string) {
		res, err := r.ListInterrupts(as(t, key), req)
		require.NoError(t, err)
		for _, i := range res.GetInterrupts() {
			require.JSONEq(t, inbox[i.GetRunId()], string(i.GetInterrupt().GetJson()))
			out = append(out, i.GetRunId())
		}
		return out
	}
	require.Len(t, ids(liveKey, &hostv1.ListInterruptsRequest{}), len(inbox))
	mine := &hostv1.ListInterruptsRequest{Eligible: proto.Bool(true)}
	require.ElementsMatch(t, []string{"open", "event", "ops", "releaser", "user", "escalated"}, ids(opsKey, mine))
	require.ElementsMatch(t, []string{"open", "event", "user", "another"}, ids(liveKey, mine), "a key without a user cannot answer for listed users")

	res, err := r.ListInterrupts(as(t, betaKey), &hostv1.ListInterruptsRequest{
		Limit:      proto.Int32(7),
		Cursor:     proto.String("c"),
		WorkflowId: proto.String("w"),
		Kind:       proto.String("approval"),
	})
	require.NoError(t, err)
	require.Equal(t, "beta 7 c w approval", res.GetNextCursor())
	for _, req := range []*hostv1.ListInterruptsRequest{
		{Limit: proto.Int32(0)},
		{Limit: proto.Int32(201)},
		{Kind: proto.String("conversation.start")},
	} {
		_, err := r.ListInterrupts(as(t, liveKey), req)
		require.Equal(t, fault.ValidationError, fault.CodeOf(err))
	}
}

// Each open question shows whether the caller may answer it. An answered one shows its answer.
func TestListInterrupts_MarksAnswerableQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, err := r.ListInterrupts(as(t, opsKey), &hostv1.ListInterruptsRequest{})
	require.NoError(t, err)
	var answerable []string
	for _, i := range res.GetInterrupts() {
		require.Nil(t, i.GetAnswer())
		if i.GetAnswerable() {
			answerable = append(answerable, i.GetRunId())
		}
	}
	require.ElementsMatch(t, []string{"open", "event", "ops", "releaser", "user", "escalated"}, answerable)

	res, err = r.ListInterrupts(as(t, opsKey), &hostv1.ListInterruptsRequest{AnsweredOn: proto.String("2026-11-27")})
	require.NoError(t, err)
	require.Len(t, res.GetInterrupts(), 1)
	done := res.GetInterrupts()[0]
	require.False(t, done.GetAnswerable())
	require.Equal(t, []string{"2026-11-27", "ada", "accept"}, []string{done.GetAnswer().GetAt(), done.GetAnswer().GetBy(), done.GetAnswer().GetAction()})
	require.JSONEq(t, `{"action":"accept"}`, string(done.GetAnswer().GetValue().GetJson()))
}

// The count is that of the caller's tenant and memberships.
func TestCountInterrupts_CountsForTheCaller(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, err := r.CountInterrupts(as(t, opsKey), &hostv1.CountInterruptsRequest{})
	require.NoError(t, err)
	require.Equal(t, []int64{9, 6, 1}, []int64{res.GetOpen(), res.GetAnswerable(), res.GetDueSoon()})
	require.True(t, res.GetTruncated())
}

// A key that is bound to a user gets no token, which would allow a second vote. A gate with named
// approvers accepts no token.
func TestGetRun_ReturnsNoTokenForASecondVote(t *testing.T) {
	t.Parallel()
	log := &eventLog{}
	r := engine.New(engine.Config{MaxStreams: 1}, engine.Deps{
		Clients: engine.Clients{EventLog: log},
		Tokens:  tokens{},
		Clock:   time.Now,
	})
	for question, want := range map[string]map[string]string{
		`"kind":"approval","data":{"actions":["accept"]}`:                             {liveKey: "token of gate", opsKey: ""},
		`"kind":"approval","data":{"actions":["accept"],"approversList":["u-2"]}`:     {liveKey: "", opsKey: ""},
		`"kind":"approval","data":{"actions":["accept"],"approverGroupRefs":["ops"]}`: {liveKey: "", opsKey: ""},
		`"kind":"external-event","data":{}`: {
			liveKey: "token of gate",
			opsKey:  "token of gate",
		},
	} {
		kind, _, _ := strings.Cut(question, ",")
		log.get = func(*eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
			return &eventlogv1.GetRunResponse{Snapshot: []byte(`{"runId":"run_1","interrupt":{` + kind + `,"nodeId":"gate","payload":{` + question + `}}}`)}, nil
		}
		for key, token := range want {
			res, err := r.GetRun(as(t, key), &openwopv1.GetRunRequest{RunId: "run_1"})
			require.NoError(t, err)
			var got struct {
				Interrupt struct {
					NodeID string `json:"nodeId"`
					Token  string `json:"interruptToken"`
				} `json:"interrupt"`
			}
			require.NoError(t, json.Unmarshal(res.GetSnapshot().GetJson(), &got))
			require.Equal(t, "gate", got.Interrupt.NodeID, "the question is shown")
			require.Equal(t, token, got.Interrupt.Token, question)
		}
	}
}
