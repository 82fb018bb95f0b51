package interrupt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/wire"
)

// OpenWOP host contract §6.1, the statuses.
func TestStatus_DependsOnTheKind(t *testing.T) {
	t.Parallel()
	for kind, status := range map[interrupt.Kind]wire.Status{
		interrupt.Approval: wire.StatusWaitingApproval, interrupt.LowConfidence: wire.StatusWaitingApproval,
		interrupt.ConversationStart: wire.StatusWaitingApproval, interrupt.ConversationExchange: wire.StatusWaitingApproval,
		interrupt.ConversationClose: wire.StatusWaitingApproval, interrupt.Clarification: wire.StatusWaitingInput,
		interrupt.ExternalEvent: wire.StatusWaitingExternal, interrupt.Custom: wire.StatusWaitingExternal,
	} {
		require.True(t, kind.Known())
		require.Equal(t, status, kind.Status(), kind)
	}
	require.False(t, interrupt.Kind("other").Known())
}

// OpenWOP host contract §6.2: the default artifact of a gate.
func TestFrom_ReadsApprovalGates(t *testing.T) {
	t.Parallel()
	r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(
		`{"title":"Send <it>?","actions":["accept","refine"],"rejectionPolicy":"first","timeoutSec":1.5,"resumeSchema":{"type":"object"},"more":1}`))
	require.Empty(t, wrong)
	require.Equal(t, interrupt.Approval, r.Kind)
	require.Equal(t, "run_1:gate:0", r.Key)
	require.EqualValues(t, 1500, r.TimeoutMs)
	require.Equal(t, `{"artifactId":"run_1:gate","artifactType":"approval","title":"Send <it>?","actions":["accept","refine"],"rejectionPolicy":"single-veto"}`, string(r.Data))
	require.JSONEq(t, `{"type":"object"}`, string(r.ResumeSchema))

	own, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(
		`{"title":"T","description":"D","actions":["accept"],"artifactId":"a","artifactType":"mail","artifactData":{"to":1},"requiredApprovals":2,"approversList":["x","y"],"overrideBypassesQuorum":true,"bulkAnswers":true,"rejectionPolicy":"majority","key":"k","timeoutMs":7}`))
	require.Empty(t, wrong)
	require.Equal(t, "k", own.Key)
	require.EqualValues(t, 7, own.TimeoutMs)
	require.JSONEq(t, `{"artifactId":"a","artifactType":"mail","title":"T","description":"D","artifactData":{"to":1},"actions":["accept"],"requiredApprovals":2,"approversList":["x","y"],"rejectionPolicy":"majority","overrideBypassesQuorum":true,"bulkAnswers":true}`, string(own.Data))
}

func TestFrom_ReadsTheOtherNodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		typeID, config string
		want           interrupt.Request
	}{
		"clarification": {
			interrupt.TypeClarificationGate, `{"questions":[{"id":"b","question":"B?","schema":{"type":"string"},"hint":1},{"id":"a","question":"A?"}],"contextType":"form"}`,
			interrupt.Request{Kind: interrupt.Clarification, Data: json.RawMessage(`{"questions":[{"id":"b","question":"B?","schema":{"type":"string"}},{"id":"a","question":"A?"}],"contextType":"form"}`)},
		},
		"an event from outside": {
			interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"paid","correlation":{"order":1}},"timeoutMs":60000}`,
			interrupt.Request{Kind: interrupt.ExternalEvent, Data: json.RawMessage(`{"eventType":"paid","correlation":{"order":1}}`), TimeoutMs: 60000},
		},
		"custom": {
			interrupt.TypeInterrupt, `{"kind":"custom","data":{"customKind":"sign","payload":null},"key":"k"}`,
			interrupt.Request{Kind: interrupt.Custom, Key: "k", Data: json.RawMessage(`{"customKind":"sign","payload":null}`)},
		},
		"an approval": {
			interrupt.TypeInterrupt, `{"kind":"approval","data":{"title":"T","actions":["accept"]}}`,
			interrupt.Request{Kind: interrupt.Approval, Data: json.RawMessage(`{"artifactId":"run_1:gate","artifactType":"approval","title":"T","actions":["accept"]}`)},
		},
		"low confidence": {
			interrupt.TypeInterrupt, `{"kind":"low-confidence","data":{"agentId":"abc","threshold":0.7,"observed":0.2}}`,
			interrupt.Request{Kind: interrupt.LowConfidence, Data: json.RawMessage(`{"agentId":"abc","threshold":0.7,"observed":0.2}`)},
		},
	} {
		got, wrong := interrupt.From(tc.typeID, at, json.RawMessage(tc.config))
		require.Empty(t, wrong, name)
		if tc.want.Key == "" {
			tc.want.Key = "run_1:gate:0"
		}
		require.Equal(t, tc.want, got, name)
	}
}

func TestFrom_ReadsIntegersInAnyNotation(t *testing.T) {
	t.Parallel()
	for _, two := range []string{"2", "2.0", "20e-1"} {
		r, wrong := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(`{"title":"T","actions":["accept"],"requiredApprovals":`+two+`,"timeoutMs":`+two+`}`))
		require.Empty(t, wrong)
		require.EqualValues(t, 2, r.TimeoutMs)
		require.Contains(t, string(r.Data), `"requiredApprovals":2}`)
	}
}

func TestCheck_ReportsPathAndRule(t *testing.T) {
	t.Parallel()
	const approval = `"title":"T","actions":["accept","reject"]`
	for name, tc := range map[string]struct {
		typeID, config string
		want           []string
	}{
		"no gate":                   {"core.noop", `{}`, []string{" kind"}},
		"nothing":                   {interrupt.TypeApprovalGate, ``, []string{" required", " required"}},
		"no object":                 {interrupt.TypeApprovalGate, `[]`, []string{" type"}},
		"no JSON":                   {interrupt.TypeApprovalGate, `{`, []string{" json"}},
		"no title":                  {interrupt.TypeApprovalGate, `{"actions":["accept"]}`, []string{" required"}},
		"no action":                 {interrupt.TypeApprovalGate, `{"title":"T","actions":[]}`, []string{"/actions minItems"}},
		"edit is edit-accept":       {interrupt.TypeApprovalGate, `{"title":"T","actions":["edit"]}`, []string{"/actions/0 enum"}},
		"an action twice":           {interrupt.TypeApprovalGate, `{"title":"T","actions":["accept","accept"]}`, []string{"/actions uniqueItems"}},
		"only questions":            {interrupt.TypeApprovalGate, `{"title":"T","actions":["ask"]}`, []string{"/actions quorum"}},
		"no approval needed":        {interrupt.TypeApprovalGate, `{` + approval + `,"requiredApprovals":0}`, []string{"/requiredApprovals minimum"}},
		"half an approval":          {interrupt.TypeApprovalGate, `{` + approval + `,"requiredApprovals":1.5}`, []string{"/requiredApprovals type"}},
		"more approvals than can":   {interrupt.TypeApprovalGate, `{` + approval + `,"requiredApprovals":2,"approversList":["a","a"]}`, []string{"/requiredApprovals quorum"}},
		"edits that not all saw":    {interrupt.TypeApprovalGate, `{"title":"T","actions":["accept","edit-accept"],"requiredApprovals":2}`, []string{"/actions quorum"}},
		"a policy that is none":     {interrupt.TypeApprovalGate, `{` + approval + `,"rejectionPolicy":"all"}`, []string{"/rejectionPolicy enum"}},
		"a profile that is none":    {interrupt.TypeApprovalGate, `{` + approval + `,"profile":"openwop-interrupt-auth"}`, []string{"/profile enum"}},
		"a negative time":           {interrupt.TypeApprovalGate, `{` + approval + `,"timeoutSec":-1}`, []string{"/timeoutSec minimum"}},
		"more than 366 days":        {interrupt.TypeApprovalGate, `{` + approval + `,"timeoutMs":31622400001}`, []string{"/timeoutMs maximum"}},
		"two times":                 {interrupt.TypeApprovalGate, `{` + approval + `,"timeoutMs":1,"timeoutSec":1}`, []string{"/timeoutSec exclusive"}},
		"a long key":                {interrupt.TypeApprovalGate, `{` + approval + `,"key":"` + strings.Repeat("k", 257) + `"}`, []string{"/key maxLength"}},
		"a schema that is none":     {interrupt.TypeApprovalGate, `{` + approval + `,"resumeSchema":{"type":"word"}}`, []string{"/resumeSchema/type schema"}},
		"a schema from elsewhere":   {interrupt.TypeApprovalGate, `{` + approval + `,"resumeSchema":{"$ref":"https://x.example/s"}}`, []string{"/resumeSchema schema"}},
		"no question":               {interrupt.TypeClarificationGate, `{"questions":[]}`, []string{"/questions minItems"}},
		"a question without id":     {interrupt.TypeClarificationGate, `{"questions":[{"question":"Q?"}]}`, []string{"/questions/0 required"}},
		"an id twice":               {interrupt.TypeClarificationGate, `{"questions":[{"id":"a","question":"Q?"},{"id":"a","question":"R?"}]}`, []string{"/questions/1/id unique"}},
		"a question's schema":       {interrupt.TypeClarificationGate, `{"questions":[{"id":"a","question":"Q?","schema":{"minimum":"x"}}]}`, []string{"/questions/0/schema/minimum schema"}},
		"no kind":                   {interrupt.TypeInterrupt, `{"data":{}}`, []string{" required"}},
		"a conversation":            {interrupt.TypeInterrupt, `{"kind":"conversation.start","data":{"conversationId":"c"}}`, []string{"/kind enum"}},
		"data of another kind":      {interrupt.TypeInterrupt, `{"kind":"custom","data":{"questions":[]}}`, []string{"/data required", "/data/questions additionalProperties"}},
		"no correlation":            {interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"x","correlation":{}}}`, []string{"/data/correlation required"}},
		"a number out of bounds":    {interrupt.TypeInterrupt, `{"kind":"external-event","data":{"eventType":"x","correlation":{"a":1e999999}}}`, []string{"/data/correlation/a number"}},
		"a confidence above 1":      {interrupt.TypeInterrupt, `{"kind":"low-confidence","data":{"agentId":"abc","threshold":0.7,"observed":1.2}}`, []string{"/data/observed maximum"}},
		"an approval within a node": {interrupt.TypeInterrupt, `{"kind":"approval","data":{"title":"T","actions":["accept"],"requiredApprovals":3,"approversList":["a"]}}`, []string{"/data/requiredApprovals quorum"}},
	} {
		wrong := interrupt.Check(tc.typeID, json.RawMessage(tc.config))
		require.Equal(t, tc.want, places(wrong), name)
		for _, p := range wrong {
			require.NotEmpty(t, p.Message, name)
		}
	}
}

func TestInterruptID_DependsOnTheOriginOnly(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range []interrupt.Origin{at, {"run_1", "gate", 1}, {"run_2", "gate", 0}, {"run_1", "gate2", 0}, {"run_1 gate", "", 0}, {`run_1" "gate`, "", 0}} {
		require.Equal(t, p.InterruptID(), p.InterruptID())
		require.False(t, seen[p.InterruptID()])
		seen[p.InterruptID()] = true
	}
	long := interrupt.Origin{RunID: strings.Repeat("r", 128), NodeID: strings.Repeat("n", 128)}
	r, wrong := interrupt.From(interrupt.TypeApprovalGate, long, json.RawMessage(`{"title":"T","actions":["accept"]}`))
	require.Empty(t, wrong)
	require.Equal(t, long.InterruptID(), r.Key, "a key has at most 256 characters")
}

func TestWithArtifact_FillsMissingData(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept"],"requiredApprovals":2}`)
	shown := p.WithArtifact(json.RawMessage(`{"to":"a"}`))
	require.JSONEq(t, `{"artifactId":"run_1:gate","artifactType":"approval","title":"T","artifactData":{"to":"a"},"actions":["accept"],"requiredApprovals":2}`, string(shown.Data))
	require.Equal(t, shown, shown.WithArtifact(json.RawMessage(`2`)), "the request's own data takes precedence")
	require.Equal(t, p.Request, p.WithArtifact(nil))
	ask := open(t, interrupt.TypeClarificationGate, `{"questions":[{"id":"q","question":"Q?"}]}`)
	require.Equal(t, ask.Request, ask.WithArtifact(json.RawMessage(`1`)))
}

// OpenWOP host contract §6.5, last row.
func TestNeedsCredential_FollowsTheProfile(t *testing.T) {
	t.Parallel()
	require.True(t, gate(t, `{"title":"T","actions":["accept"],"profile":"openwop-interrupt-auth-required"}`).NeedsCredential())
	require.False(t, gate(t, `{"title":"T","actions":["accept"],"profile":"openwop-interrupt-quorum"}`).NeedsCredential())
	require.False(t, gate(t, `{"title":"T","actions":["accept"]}`).NeedsCredential())
	require.False(t, gate(t, `{"title":"T","actions":["accept"],"approversList":[]}`).NeedsCredential())
}

// A token identifies no person, so it never matches an approver (OpenWOP host contract §6.3).
func TestNeedsCredential_IfTheGateNamesApprovers(t *testing.T) {
	t.Parallel()
	for member, want := range map[string]bool{`"approversList":["ada"]`: true, `"approverGroupRefs":["g"]`: true, `"approverRoleRefs":["r"]`: true, `"approverRoleRefs":[]`: false} {
		p := gate(t, `{"title":"T","actions":["accept"],`+member+`}`)
		require.Equal(t, want, p.NeedsCredential(), member)
		require.Equal(t, want, p.NamesApprovers(), member)
	}
}

// The published fixtures are valid and have the expected status.
func TestFrom_AcceptsThePublishedFixtures(t *testing.T) {
	t.Parallel()
	dir := schematest.Dir(t)
	for name, status := range map[string]wire.Status{
		"conformance-approval": wire.StatusWaitingApproval, "conformance-clarification": wire.StatusWaitingInput,
		"conformance-interrupt-quorum": wire.StatusWaitingApproval, "conformance-interrupt-external-event": wire.StatusWaitingExternal,
		"conformance-interrupt-auth-required": wire.StatusWaitingApproval, "conformance-interrupt-parent-child-cancel-child": wire.StatusWaitingApproval,
	} {
		b, err := os.ReadFile(filepath.Join(dir, "fixtures", name+".json"))
		require.NoError(t, err)
		var def struct {
			Nodes []struct {
				ID, TypeID string
				Config     json.RawMessage
			}
		}
		require.NoError(t, json.Unmarshal(b, &def))
		found := false
		for _, n := range def.Nodes {
			if n.TypeID != interrupt.TypeApprovalGate && n.TypeID != interrupt.TypeClarificationGate && n.TypeID != interrupt.TypeInterrupt {
				continue
			}
			found = true
			r, wrong := interrupt.From(n.TypeID, interrupt.Origin{RunID: "r", NodeID: n.ID}, n.Config)
			require.Empty(t, wrong, name)
			require.Equal(t, status, r.Kind.Status(), name)
			require.Equal(t, name == "conformance-interrupt-auth-required", (&interrupt.Pending{Request: r}).NeedsCredential())
		}
		require.True(t, found, name)
	}
}
