package interrupt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/wire"
)

// OpenWOP host contract §3.4, §12 no. 7 and 10.
func TestOpen_RecordsApprovals(t *testing.T) {
	t.Parallel()
	r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(
		`{"title":"T","actions":["accept","edit-accept"],"approversList":["ada"],"resumeSchema":{"type":"object"},"timeoutSec":60}`))
	require.Empty(t, wrong)
	p, events := interrupt.Open(at, r, now, wire.Trusted)
	id := at.InterruptID()
	require.Equal(t, []wire.EventType{wire.EventNodeSuspended, wire.EventInterruptRequested, wire.EventApprovalRequested}, types(events))
	for _, e := range events {
		require.Equal(t, "gate", e.NodeID)
		require.Empty(t, e.Trust)
	}
	require.JSONEq(t, `{"nodeId":"gate","interruptId":"`+id+`","kind":"approval","key":"run_1:gate:0"}`, payload(t, events, wire.EventNodeSuspended))
	require.JSONEq(t, `{"runId":"run_1","nodeId":"gate","interruptId":"`+id+`","kind":"approval","key":"run_1:gate:0","data":`+string(p.Data)+`,"resumeSchema":{"type":"object"},"timeoutMs":60000,"requestedAt":"2026-05-01T12:00:00.000Z"}`, payload(t, events, wire.EventInterruptRequested))
	require.Contains(t, string(p.Data), `"edit-accept"`)
	require.JSONEq(t, `{"nodeId":"gate","interruptId":"`+id+`","artifactId":"run_1:gate","artifactType":"approval","title":"T","actions":["accept","edit"],"approversList":["ada"]}`, payload(t, events, wire.EventApprovalRequested))

	again, repeated := interrupt.Open(at, r, now, wire.Trusted)
	require.Equal(t, p, again)
	require.Equal(t, events, repeated, "ids are deterministic")
}

func TestOpen_RecordsOtherKinds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typeID, config string
		want           []wire.EventType
		says           string
	}{
		"clarification": {interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?","schema":{"type":"string"}}]}`, []wire.EventType{wire.EventNodeSuspended, wire.EventInterruptRequested, wire.EventClarificationRequested}, `"questions":[{"id":"q","question":"Q?","schema":{"type":"string"}}]`},
		"external":      {interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"e","correlation":{"a":1}}}`, []wire.EventType{wire.EventNodeSuspended, wire.EventInterruptRequested}, `"eventType":"e"`},
		"low":           {interrupt.TypeInterrupt, `{"kind":"low-confidence","data":{"agentId":"abc","threshold":1,"observed":0}}`, []wire.EventType{wire.EventNodeSuspended, wire.EventInterruptRequested}, `"kind":"low-confidence"`},
	} {
		r, wrong := interrupt.From(tc.typeID, at, json.RawMessage(tc.config))
		require.Empty(t, wrong, name)
		_, events := interrupt.Open(at, r, now, "")
		require.Equal(t, tc.want, types(events), name)
		require.Contains(t, string(events[len(events)-1].Payload), tc.says, name)
		require.Equal(t, name == "low", json.Valid(events[0].Payload) && containsReason(events[0].Payload), name)
	}
}

func containsReason(b json.RawMessage) bool {
	var p struct{ Reason string }
	return json.Unmarshal(b, &p) == nil && p.Reason == "low-confidence"
}

func TestReopen_ReadsTheEvent(t *testing.T) {
	t.Parallel()
	for _, trust := range []wire.Trust{"", wire.Untrusted} {
		r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(`{"title":"T","actions":["accept"],"timeoutMs":5,"resumeSchema":{"type":"object"}}`))
		require.Empty(t, wrong)
		p, events := interrupt.Open(at, r, now, trust)
		again, err := interrupt.Reopen(events[1].Payload, trust)
		require.NoError(t, err)
		require.Equal(t, p, again)
	}
	for _, damaged := range []string{``, `{}`, `[]`, `{"kind":"approval","nodeId":"n"}`, `{"kind":"other","nodeId":"n","interruptId":"i"}`} {
		_, err := interrupt.Reopen(json.RawMessage(damaged), "")
		require.ErrorContains(t, err, "read interrupt", damaged)
	}
}

// OpenWOP host contract §6.5, GET inspect.
func TestInspect_ShowsTheQuestionAndItsTimes(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2,"timeoutSec":9}`)
	p.AddNote(*decide(t, gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2}`), by(key, vote("a accept"))).Note)
	require.Len(t, p.Votes, 1)
	b, err := json.Marshal(p.Inspect(now.Add(time.Second), false))
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"approval","key":"run_1:gate:0","data":`+string(p.Data)+`,"timeoutMs":9000,"requestedAt":"2026-05-01T12:00:00.000Z","expiresAt":"2026-05-01T12:00:01.000Z","resolved":false}`, string(b), "and not who voted")
}

// OpenWOP host contract §6.4: the events of success, in order.
func TestDecide_RecordsAnApproval(t *testing.T) {
	t.Parallel()
	p := gate(t, everyAction)
	id := p.InterruptID
	d := decide(t, p, by(interrupt.Responder{Principal: "k", User: "ada"}, `{"action":"edit-accept","editedArtifactData":{"a":1},"feedback":"f","mine":true}`))
	require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventApprovalReceived, wire.EventNodeResumed}, types(d.Events))
	require.JSONEq(t, `{"runId":"run_1","nodeId":"gate","interruptId":"`+id+`","kind":"approval","resumeValue":`+string(d.Resume)+`,"resolvedAt":"2026-05-01T12:01:00.000Z","resolvedBy":"ada"}`, payload(t, d.Events, wire.EventInterruptResolved))
	require.JSONEq(t, `{"nodeId":"gate","action":"edit-accept","decidedBy":"ada","decidedAt":"2026-05-01T12:01:00.000Z","feedback":"f","editedArtifactData":{"a":1}}`, payload(t, d.Events, wire.EventApprovalReceived))
	require.JSONEq(t, `{"nodeId":"gate","interruptId":"`+id+`","resumeValue":`+string(d.Resume)+`}`, payload(t, d.Events, wire.EventNodeResumed))
}

// OpenWOP host contract §6.4: a rejected gate. The run derives the node's and its own end from the
// failure.
func TestDecide_RecordsARejection(t *testing.T) {
	t.Parallel()
	p := gate(t, everyAction)
	d := decide(t, p, by(key, `{"action":"reject"}`))
	require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventApprovalReceived}, types(d.Events))
	require.Equal(t, &wire.NodeError{
		Code: "interrupt_rejected", Message: "the approval was rejected", Details: map[string]any{"interruptId": p.InterruptID, "reason": "rejected"},
	}, d.Failure)
}

func TestDecide_RecordsAnswers(t *testing.T) {
	t.Parallel()
	p := open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?"}]}`)
	d := decide(t, p, by(key, `{"answers":[{"id":"q","answer":"<a>"}],"more":1}`))
	require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventClarificationResolved, wire.EventNodeResumed}, types(d.Events))
	require.JSONEq(t, `{"nodeId":"gate","answers":{"q":"<a>"},"answeredBy":"key-1"}`, payload(t, d.Events, wire.EventClarificationResolved))
}

// OpenWOP host contract §6.5, timeouts.
func TestTimeOut_FailsClosed(t *testing.T) {
	t.Parallel()
	later := now.Add(time.Hour)
	p := gate(t, `{"title":"T","actions":["accept"],"timeoutSec":1}`)
	d := p.TimeOut(later)
	require.Equal(t, interrupt.Rejected, d.Outcome)
	require.Equal(t, interrupt.TimedOut, d.Action)
	require.Equal(t, "interrupt_rejected", d.Failure.Code)
	require.Equal(t, "timeout", d.Failure.Details["reason"])
	require.Equal(t, []wire.EventType{wire.EventInterruptResolved, wire.EventApprovalReceived}, types(d.Events))
	require.JSONEq(t, `{"runId":"run_1","nodeId":"gate","interruptId":"`+p.InterruptID+`","kind":"approval","resolvedAt":"2026-05-01T13:00:00.000Z","outcome":"rejected","reason":"timeout"}`, payload(t, d.Events, wire.EventInterruptResolved))
	require.JSONEq(t, `{"nodeId":"gate","action":"timeout","decidedAt":"2026-05-01T13:00:00.000Z"}`, payload(t, d.Events, wire.EventApprovalReceived))

	q := open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?"}],"timeoutSec":1}`)
	d = q.TimeOut(later)
	require.Equal(t, interrupt.Rejected, d.Outcome)
	require.Empty(t, d.Action)
	require.Equal(t, "interrupt_timeout", d.Failure.Code)
	require.Equal(t, []wire.EventType{wire.EventInterruptResolved}, types(d.Events))
}

// Recorded events satisfy the published schemas.
func TestEvents_MatchThePublishedSchemas(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(schematest.Dir(t), "schemas")
	b, err := os.ReadFile(filepath.Join(dir, "run-event-payloads.schema.json"))
	require.NoError(t, err)
	var payloads struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(b, &payloads))
	b, err = os.ReadFile(filepath.Join(dir, "suspend-request.schema.json"))
	require.NoError(t, err)
	shape := map[wire.EventType]*schema.Schema{}
	for typ, def := range map[wire.EventType]string{
		wire.EventNodeSuspended: "nodeSuspended", wire.EventNodeResumed: "nodeResumed", wire.EventApprovalRequested: "approvalRequested", wire.EventApprovalReceived: "approvalReceived",
		wire.EventClarificationRequested: "clarificationRequested", wire.EventClarificationResolved: "clarificationResolved", wire.EventInterruptResolved: "interruptResolved",
		wire.EventApprovalOverridden: "approvalOverridden",
	} {
		shape[typ], err = schema.Compile(def, payloads.Defs[def])
		require.NoError(t, err)
	}
	shape[wire.EventInterruptRequested], err = schema.Compile("suspend-request", b)
	require.NoError(t, err)

	seen := map[wire.EventType]bool{}
	check := func(drafts []wire.Draft) {
		for _, d := range drafts {
			doc := d.Payload
			if d.Type == wire.EventInterruptRequested { // the payload without the asking node
				var r interrupt.Request
				require.NoError(t, json.Unmarshal(doc, &r))
				doc, err = json.Marshal(r)
				require.NoError(t, err)
			}
			require.Empty(t, shape[d.Type].Validate(doc), "%s: %s", d.Type, doc)
			seen[d.Type] = true
		}
	}
	for _, tc := range []struct{ typeID, config, value string }{
		{interrupt.TypeApprovalGate, everyAction, `{"action":"accept","feedback":"f"}`},
		{interrupt.TypeApprovalGate, everyAction, `{"action":"reject"}`},
		{interrupt.TypeApprovalGate, everyAction, `{"decision":"rejected","feedback":"f"}`},
		{interrupt.TypeApprovalGate, everyAction, `{"action":"edit-accept","editedArtifactData":[]}`},
		{interrupt.TypeApprovalGate, `{"title":"T","actions":["accept"],"approversList":["a"],"artifactData":1,"rejectionPolicy":"first","profile":"openwop-interrupts"}`, `{"action":"accept","voter":"a"}`},
		{interrupt.TypeApprovalGate, `{"title":"T","actions":["accept"],"approverGroupRefs":["g"],"approverRoleRefs":["r"],"audience":{"roles":["r"]},"override":{"requiredRole":"chief"}}`, overrideAs("")},
		{interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?","schema":{}}],"contextType":"c","timeoutMs":9999999}`, `{"answers":{"q":1}}`},
		{interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"e","correlation":{"a":1}}}`, `{"a":1}`},
		{interrupt.TypeInterrupt, `{"kind":"custom","data":{"customKind":"e","payload":[]},"resumeSchema":{"type":"null"}}`, `null`},
		{interrupt.TypeInterrupt, `{"kind":"low-confidence","data":{"agentId":"abc","threshold":0.5,"observed":0.1}}`, `{"action":"accept"}`},
	} {
		r, wrong := interrupt.From(tc.typeID, at, json.RawMessage(tc.config))
		require.Empty(t, wrong)
		p, events := interrupt.Open(at, r, now, "")
		check(events)
		check(decide(t, p, by(interrupt.Responder{Principal: "key-1", Roles: []string{"chief"}}, tc.value)).Events)
		check(p.TimeOut(now).Events)
	}
	require.Len(t, seen, len(shape), "every event was checked")
}
