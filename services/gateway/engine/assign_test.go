package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

// assignments is an audit log that collects entries.
type assignments struct {
	mu   sync.Mutex
	list []audit.Entry
}

func (a *assignments) Record(_ context.Context, _ string, entries ...audit.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, entries...)
	return nil
}

// oneQuestion is an event log with the question that the dispatcher of the rig asks.
type oneQuestion struct{ eventlogv1.EventLogClient }

func (oneQuestion) ListInterrupts(context.Context, *eventlogv1.ListInterruptsRequest, ...grpc.CallOption) (*eventlogv1.ListInterruptsResponse, error) {
	return &eventlogv1.ListInterruptsResponse{Interrupts: []*eventlogv1.OpenInterrupt{
		{RunId: "run_1", Interrupt: []byte(`{"kind":"approval","nodeId":"gate","interruptId":"int_1","payload":{"kind":"approval","data":{"actions":["accept"]}}}`)},
	}}, nil
}

func withAssignees(t *testing.T, store kv.Store) (*rig, *assignments) {
	t.Helper()
	r, book := newRig(t), &assignments{}
	r.Service = engine.New(engine.Config{MaxStreams: maxStreams}, engine.Deps{
		Clients:   engine.Clients{Dispatcher: r.dispatcher, EventLog: oneQuestion{}},
		Assignees: &engine.AssigneeStore{Store: store},
		Audit:     engine.Audit{Recorder: book},
		Clock:     func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	return r, book
}

func (r *rig) assign(t *testing.T, key string, req *hostv1.AssignInterruptRequest) (string, error) {
	t.Helper()
	req.RunId = "run_1"
	if req.GetNodeId() == "" {
		req.NodeId = "gate"
	}
	res, err := r.AssignInterrupt(as(t, key), req)
	return res.GetAssignment().GetAssignee(), err
}

// listed counts the questions of a list.
func (r *rig) listed(t *testing.T, key string, req *hostv1.ListInterruptsRequest) []*hostv1.OpenInterrupt {
	t.Helper()
	res, err := r.ListInterrupts(as(t, key), req)
	require.NoError(t, err)
	return res.GetInterrupts()
}

func TestAssignInterrupt_OneOfTwoWhoClaimAQuestionGetsIt(t *testing.T) {
	t.Parallel()
	store := memory.New()
	r, book := withAssignees(t, store)
	require.Len(t, r.listed(t, opsKey, &hostv1.ListInterruptsRequest{Unassigned: proto.Bool(true)}), 1)
	who, err := r.assign(t, opsKey, &hostv1.AssignInterruptRequest{InterruptId: proto.String("int_1")})
	require.NoError(t, err)
	require.Equal(t, "u-1", who)

	_, err = r.assign(t, liveKey, &hostv1.AssignInterruptRequest{})
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.ErrorContains(t, err, "u-1")
	who, err = r.assign(t, opsKey, &hostv1.AssignInterruptRequest{})
	require.NoError(t, err, "again")
	require.Equal(t, "u-1", who)

	r, _ = withAssignees(t, store) // a gateway that was restarted
	mine := r.listed(t, opsKey, &hostv1.ListInterruptsRequest{Mine: proto.Bool(true)})
	require.Len(t, mine, 1)
	require.Equal(t, "u-1", mine[0].GetAssignment().GetAssignedBy())
	require.Empty(t, r.listed(t, liveKey, &hostv1.ListInterruptsRequest{Mine: proto.Bool(true)}))
	require.Empty(t, r.listed(t, liveKey, &hostv1.ListInterruptsRequest{Unassigned: proto.Bool(true)}))
	require.Len(t, r.listed(t, liveKey, &hostv1.ListInterruptsRequest{Assignee: proto.String("u-1")}), 1)
	require.Nil(t, r.listed(t, betaKey, &hostv1.ListInterruptsRequest{})[0].GetAssignment(), "of another tenant")

	require.Len(t, book.list, 2, "the repeated call, too: the first could have ended before its entry")
	for _, e := range book.list {
		require.Equal(t, "interrupt.assigned", e.Action)
		require.Equal(t, map[string]any{"nodeId": "gate", "interruptId": "int_1", "assignee": "u-1"}, e.Details)
	}
}

// lost is a store whose values cannot be read.
type lost struct{ kv.Store }

func (lost) Get(context.Context, string) (kv.Entry, error) { return kv.Entry{}, kv.ErrUnavailable }

// The list of questions does not depend on the store of assignees, unless the request filters by assignee.
func TestListInterrupts_WithoutTheStoreOfAssignees(t *testing.T) {
	t.Parallel()
	r, _ := withAssignees(t, lost{memory.New()})
	require.Len(t, r.listed(t, opsKey, &hostv1.ListInterruptsRequest{}), 1)
	_, err := r.ListInterrupts(as(t, opsKey), &hostv1.ListInterruptsRequest{Mine: proto.Bool(true)})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestAssignInterrupt_TakesOverAndReleases(t *testing.T) {
	t.Parallel()
	r, book := withAssignees(t, memory.New())
	_, err := r.assign(t, opsKey, &hostv1.AssignInterruptRequest{Assignee: proto.String("ben")})
	require.NoError(t, err)
	who, err := r.assign(t, opsKey, &hostv1.AssignInterruptRequest{Replace: proto.Bool(true)})
	require.NoError(t, err)
	require.Equal(t, "u-1", who)
	for range 2 { // the second one changes nothing
		_, err = r.ReleaseInterrupt(as(t, liveKey), &hostv1.ReleaseInterruptRequest{RunId: "run_1", NodeId: "gate"})
		require.NoError(t, err)
	}
	require.Len(t, r.listed(t, liveKey, &hostv1.ListInterruptsRequest{Unassigned: proto.Bool(true)}), 1)
	var actions []string
	for _, e := range book.list {
		actions = append(actions, e.Action+" "+e.Details["assignee"].(string)) //nolint:forcetypeassert // it is text
	}
	require.Equal(t, []string{"interrupt.assigned ben", "interrupt.assigned u-1", "interrupt.released u-1"}, actions)
}

func TestAssignInterrupt_RejectsWhatIsNoOpenQuestion(t *testing.T) {
	t.Parallel()
	r, book := withAssignees(t, memory.New())
	for name, c := range map[string]struct {
		req  *hostv1.AssignInterruptRequest
		want fault.Code
	}{
		"no such node":     {&hostv1.AssignInterruptRequest{NodeId: "nowhere"}, fault.InterruptNotFound},
		"answered":         {&hostv1.AssignInterruptRequest{NodeId: "closed"}, fault.InterruptResolved},
		"another question": {&hostv1.AssignInterruptRequest{InterruptId: proto.String("int_0")}, fault.InterruptResolved},
		"no name":          {&hostv1.AssignInterruptRequest{Assignee: proto.String("two words")}, fault.ValidationError},
	} {
		_, err := r.assign(t, opsKey, c.req)
		require.Equal(t, c.want, fault.CodeOf(err), name)
	}
	_, err := r.ReleaseInterrupt(as(t, opsKey), &hostv1.ReleaseInterruptRequest{RunId: "run_1", NodeId: "closed"})
	require.Equal(t, fault.InterruptResolved, fault.CodeOf(err))
	require.Empty(t, book.list)
}
