package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// asks are workflows that wait for an answer.
var asks = []string{
	definition("approve", node("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject","refine","ask"]}`, "{}"), "", "", ""),
	definition("approve-routed", node("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject"]}`, "{}")+","+node("sorry", "core.noop", "{}", "{}"),
		`{"id":"e","sourceNodeId":"gate","targetNodeId":"sorry","triggerRule":"any_failed"}`, "", ""),
	definition("approve-three", node("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject"],"requiredApprovals":3,"rejectionPolicy":"majority"}`, "{}"), "", "", ""),
	definition("approve-group", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"approverGroupRefs":["ops"],"approverRoleRefs":["chief"],"audience":{"groups":["all"]}}`, "{}"), "", "", ""),
	definition("approve-chief", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"requiredApprovals":2,"approversList":["ann","bob"],"override":{"requiredRole":"chief"}}`, "{}"), "", "", ""),
	definition("approve-force", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"requiredApprovals":2,"approversList":["ann","bob"],"override":{"requiredRole":"chief"},"overrideBypassesQuorum":true}`, "{}"), "", "", ""),
	definition("approve-later", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"approversList":["ann"],"timeoutSec":60,"escalation":[{"afterSec":0.2},{"afterSec":0.4,"approverGroupRefs":["ops"]}]}`, "{}"), "", "", ""),
	definition("approve-soon", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"timeoutSec":1}`, "{}"), "", "", ""),
	definition("approve-keyed", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"profile":"openwop-interrupt-auth-required"}`, "{}"), "", "", ""),
	definition("clarify", node("ask", "core.clarificationGate", `{"questions":[{"id":"q1","question":"color?","schema":{"enum":["blue","red"]}}]}`, "{}"), "", "", ""),
	definition("external", node("hook", "core.interrupt", `{"kind":"external-event","data":{"eventType":"paid","correlation":{"order":7}}}`, "{}"), "", "", ""),
	definition("unsure", node("a", "core.interrupt", `{"kind":"low-confidence","data":{"agentId":"core.sorter","observed":0.4,"decision":"spam"}}`, "{}"), "", "", ""),
	definition("sure", node("a", "core.interrupt", `{"kind":"low-confidence","data":{"agentId":"core.sorter","observed":0.7,"decision":"spam"}}`, "{}"), "", "", ""),
	definition("custom", node("any", "core.interrupt", `{"kind":"custom","data":{"customKind":"x"},"resumeSchema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}`, "{}"), "", "", ""),
	definition("two-gates", node("a", "core.approvalGate", `{"title":"t","actions":["accept"]}`, "{}")+","+node("b", "core.approvalGate", `{"title":"t","actions":["accept"]}`, "{}"), "", "", ""),
}

type waiting struct {
	Status        string `json:"status"`
	CurrentNodeID string `json:"currentNodeId"`
	Interrupt     *struct {
		Kind, NodeID, InterruptID string
		InterruptToken            string
		Payload                   map[string]json.RawMessage
	} `json:"interrupt"`
}

// suspended creates a run and waits until it is suspended.
func suspended(t *testing.T, c *harness.Client, workflow, status string) (id string, w waiting) {
	t.Helper()
	id = create(t, c, `{"workflowId":"`+workflow+`"}`).RunID
	await(t, c, id, patience, status)
	require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+id, "").JSON(&w))
	require.NotNil(t, w.Interrupt)
	return id, w
}

func answer(t *testing.T, c *harness.Client, id, node, value string) *harness.Answer {
	t.Helper()
	return do(t, c, http.MethodPost, "/v1/runs/"+id+"/interrupts/"+node, `{"resumeValue":`+value+`}`)
}

// OpenWOP host contract §3.5: the events of an approval, in order.
func TestInterrupt_ApprovalSuspendsAndResumes(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, w := suspended(t, c, "approve", "waiting-approval")
	require.Equal(t, "gate", w.CurrentNodeID)
	require.Equal(t, "approval", w.Interrupt.Kind)
	a := answer(t, c, id, "gate", `{"action":"accept"}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.suspended interrupt.requested approval.requested "+
		"interrupt.resolved approval.received node.resumed node.completed run.completed", strings.Join(names(events), " "))
	for _, e := range events {
		require.NotContains(t, string(e.Payload), w.Interrupt.InterruptToken, "no token in the log")
	}
	a = answer(t, c, id, "gate", `{"action":"accept"}`)
	require.Equal(t, "interrupt_already_resolved", a.Code())
	require.Equal(t, http.StatusConflict, a.Status)
}

// OpenWOP host contract §6.2-§6.4: an invalid answer leaves the interrupt open.
func TestInterrupt_RejectsInvalidAnswers(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	approve, _ := suspended(t, c, "approve", "waiting-approval")
	clarify, _ := suspended(t, c, "clarify", "waiting-input")
	external, _ := suspended(t, c, "external", "waiting-external")
	custom, _ := suspended(t, c, "custom", "waiting-external")
	for name, tc := range map[string]struct {
		run, node, body string
		status          int
		code            string
	}{
		"an action the gate does not offer": {approve, "gate", `{"resumeValue":{"action":"edit-accept","editedArtifactData":{}}}`, 400, "validation_error"},
		"refine without feedback":           {approve, "gate", `{"resumeValue":{"action":"refine"}}`, 400, "validation_error"},
		"no answer at all":                  {approve, "gate", `{}`, 400, "validation_error"},
		"an unknown member":                 {approve, "gate", `{"resumeValue":{"action":"accept"},"more":1}`, 400, "validation_error"},
		"a node without a question":         {approve, "ghost", `{"resumeValue":{"action":"accept"}}`, 404, "interrupt_not_found"},
		"an unknown run":                    {"run_ghost", "gate", `{"resumeValue":{"action":"accept"}}`, 404, "run_not_found"},
		"a question left out":               {clarify, "ask", `{"resumeValue":{"answers":{}}}`, 422, "validation_error"},
		"an answer outside its schema":      {clarify, "ask", `{"resumeValue":{"answers":{"q1":"green"}}}`, 422, "validation_error"},
		"no answers":                        {clarify, "ask", `{"resumeValue":{}}`, 400, "validation_error"},
		"another event":                     {external, "hook", `{"resumeValue":{"order":8}}`, 422, "correlation_mismatch"},
		"outside the resumeSchema":          {custom, "any", `{"resumeValue":{"n":"x"}}`, 400, "validation_error"},
	} {
		a := do(t, c, http.MethodPost, "/v1/runs/"+tc.run+"/interrupts/"+tc.node, tc.body)
		require.Equal(t, tc.status, a.Status, "%s: %s", name, a.Body)
		require.Equal(t, tc.code, a.Code(), name)
	}
	require.Equal(t, http.StatusNotFound, answer(t, client(t, otherKey), approve, "gate", `{"action":"accept"}`).Status, "another tenant's")
	require.Equal(t, http.StatusForbidden, answer(t, client(t, readerKey), approve, "gate", `{"action":"accept"}`).Status, "without the scope")
	require.Equal(t, http.StatusUnauthorized, answer(t, client(t, "unknown"), approve, "gate", `{"action":"accept"}`).Status)
	for id, value := range map[string][2]string{
		approve: {"gate", `{"action":"accept"}`}, clarify: {"ask", `{"answers":[{"id":"q1","answer":"blue"}]}`},
		external: {"hook", `{"order":7.0,"more":true}`}, custom: {"any", `{"n":1}`},
	} {
		require.Equal(t, http.StatusOK, answer(t, c, id, value[0], value[1]).Status, "it is still open")
		await(t, c, id, patience, "completed")
	}
}

// An answer with the id of another question than the open one resolves nothing.
func TestInterrupt_OfTheQuestionThatWasRead(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, _ := suspended(t, c, "approve", "waiting-approval")
	var shown struct{ Interrupt struct{ InterruptID string } }
	require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+id, "").JSON(&shown))
	path, accept := "/v1/runs/"+id+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`
	for seen, want := range map[string]string{"int_none": "interrupt_already_resolved", "": "validation_error"} {
		a := do(t, c, http.MethodPost, path, accept, "Waybill-Interrupt-Id", seen)
		require.Equal(t, want, a.Code(), "%s", a.Body)
	}
	a := do(t, c, http.MethodPost, path, accept, "Waybill-Interrupt-Id", shown.Interrupt.InterruptID)
	require.Equal(t, http.StatusOK, a.Status, "it is still open: %s", a.Body)
	await(t, c, id, patience, "completed")
}

// OpenWOP host contract §6.3.
func TestInterrupt_NeedsAQuorum(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	vote := func(id, voter, action string) string {
		a := answer(t, c, id, "gate", `{"action":"`+action+`","voter":"`+voter+`"}`)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		var v struct{ Status string }
		require.NoError(t, a.JSON(&v))
		return v.Status
	}
	type votes struct{ Accepts, Rejects, Required int }
	counted := func(id string, w waiting) (listed, inspected votes) {
		var list struct {
			Interrupts []struct {
				RunID     string
				Interrupt struct{ Votes votes }
			}
		}
		require.NoError(t, do(t, c, http.MethodGet, "/v1/interrupts?limit=200&workflowId=approve-three", "").JSON(&list))
		for _, i := range list.Interrupts {
			if i.RunID == id {
				listed = i.Interrupt.Votes
			}
		}
		var shown struct{ Votes votes }
		require.NoError(t, do(t, client(t, ""), http.MethodGet, "/v1/interrupts/"+w.Interrupt.InterruptToken, "").JSON(&shown))
		return listed, shown.Votes
	}
	id, w := suspended(t, c, "approve-three", "waiting-approval")
	require.Equal(t, "waiting-approval", vote(id, "ann", "accept"))
	require.Equal(t, "waiting-approval", vote(id, "ann", "accept"), "the same voter")
	listed, inspected := counted(id, w)
	require.Equal(t, votes{Accepts: 1, Required: 3}, listed)
	require.Equal(t, listed, inspected)
	require.Equal(t, "waiting-approval", vote(id, "bob", "accept"))
	listed, _ = counted(id, w)
	require.Equal(t, votes{Accepts: 2, Required: 3}, listed)
	vote(id, "cid", "accept")
	await(t, c, id, patience, "completed")

	id, _ = suspended(t, c, "approve-three", "waiting-approval")
	require.Equal(t, "waiting-approval", vote(id, "ann", "reject"))
	vote(id, "bob", "reject")
	await(t, c, id, patience, "failed")
}

// OpenWOP host contract §6.4, §12 no. 24: a rejection fails the run unless it is routed.
func TestInterrupt_RejectionFailsUnlessRouted(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	for workflow, want := range map[string]string{"approve": "failed", "approve-routed": "completed"} {
		id, _ := suspended(t, c, workflow, "waiting-approval")
		require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"action":"reject"}`).Status)
		await(t, c, id, patience, want)
	}
}

// OpenWOP host contract §6.5: without an answer in time, the gate fails closed.
func TestInterrupt_TimesOut(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id := create(t, c, `{"workflowId":"approve-soon"}`).RunID // it may wait for less time than a request takes
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.suspended interrupt.requested approval.requested "+
		"interrupt.resolved approval.received node.failed run.failed", strings.Join(names(events), " "))
	require.Contains(t, string(events[5].Payload), `"reason":"timeout"`)
}

// OpenWOP host contract §6.5.
func TestInterrupt_TokenIsTheAuthorisation(t *testing.T) {
	t.Parallel()
	c, anonymous := client(t, liveKey), client(t, "")
	id, w := suspended(t, c, "external", "waiting-external")
	at := "/v1/interrupts/" + w.Interrupt.InterruptToken
	a := do(t, anonymous, http.MethodGet, at, "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	var shown map[string]any
	require.NoError(t, a.JSON(&shown))
	require.Equal(t, false, shown["resolved"])
	for _, member := range []string{"kind", "key", "data", "requestedAt", "expiresAt"} {
		require.Contains(t, shown, member)
	}
	for name, token := range map[string]string{
		"garbage": "x", "cut": w.Interrupt.InterruptToken[:len(w.Interrupt.InterruptToken)-1], "longer": w.Interrupt.InterruptToken + "A",
	} {
		a := do(t, anonymous, http.MethodPost, "/v1/interrupts/"+token, `{"resumeValue":{"order":7}}`)
		require.Equal(t, http.StatusNotFound, a.Status, name)
		require.Equal(t, "interrupt_not_found", a.Code(), name)
	}
	a = do(t, anonymous, http.MethodPost, at, `{"resumeValue":{"order":7}}`, "Idempotency-Key", "once-"+id)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	again := do(t, anonymous, http.MethodPost, at, `{"resumeValue":{"order":7}}`, "Idempotency-Key", "once-"+id)
	require.Equal(t, string(a.Body), string(again.Body))
	require.Equal(t, "true", again.Header.Get("Openwop-Idempotent-Replay"))
	await(t, c, id, patience, "completed")

	id, w = suspended(t, c, "approve-keyed", "waiting-approval")
	a = do(t, anonymous, http.MethodPost, "/v1/interrupts/"+w.Interrupt.InterruptToken, `{"resumeValue":{"action":"accept"}}`)
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Equal(t, "auth_elevation_required", a.Code())
	require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"action":"accept"}`).Status)

	id, w = suspended(t, c, "approve", "waiting-approval")
	do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "")
	a = do(t, anonymous, http.MethodPost, "/v1/interrupts/"+w.Interrupt.InterruptToken, `{"resumeValue":{"action":"accept"}}`)
	require.Equal(t, http.StatusGone, a.Status, "%s", a.Body)
	require.Equal(t, "interrupt_gone", a.Code())
}

// Only callers who may answer, and the creator of the run, see the token.
func TestInterrupt_TokenIsShownToCallersWhoMayAnswer(t *testing.T) {
	t.Parallel()
	id, _ := suspended(t, client(t, liveKey), "approve", "waiting-approval")
	var w waiting
	require.NoError(t, do(t, client(t, readerKey), http.MethodGet, "/v1/runs/"+id, "").JSON(&w))
	require.Nil(t, w.Interrupt)
	require.Equal(t, "gate", w.CurrentNodeID)
}

// OpenWOP host contract §6.4: a run waits until the last of its gates is answered.
func TestInterrupt_TwoGatesAreAnsweredOneByOne(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, w := suspended(t, c, "two-gates", "waiting-approval")
	require.Equal(t, "a", w.CurrentNodeID)
	var v struct{ Status string }
	require.NoError(t, answer(t, c, id, "a", `{"action":"accept"}`).JSON(&v))
	require.Equal(t, "waiting-approval", v.Status)
	require.NoError(t, answer(t, c, id, "b", `{"action":"accept"}`).JSON(&v))
	await(t, c, id, patience, "completed")
}

// OpenWOP host contract §6.2: the action ask does not decide.
func TestInterrupt_AskLeavesTheGateOpen(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, _ := suspended(t, c, "approve", "waiting-approval")
	a := answer(t, c, id, "gate", `{"action":"ask","question":"why?"}`)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), `"status":"waiting-approval"`)
	require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"action":"accept"}`).Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(strings.Join(names(events), " "), "approval.received"))
}

// RFC 0104: membership of groups and roles is checked when the answer arrives.
func TestInterrupt_AcceptsMembersOfGroupsAndRoles(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	for _, key := range []string{opsKey, chiefKey} {
		id, w := suspended(t, c, "approve-group", "waiting-approval")
		require.Contains(t, string(w.Interrupt.Payload["data"]), `"approverGroupRefs":["ops"],"approverRoleRefs":["chief"],"audience":{"groups":["all"]}`)
		a := answer(t, c, id, "gate", `{"action":"accept","voter":"ops"}`)
		require.Equal(t, http.StatusForbidden, a.Status, "all scopes are no group: %s", a.Body)
		require.Equal(t, "forbidden", a.Code())
		require.NotContains(t, string(a.Body), "ops")
		require.Empty(t, w.Interrupt.InterruptToken, "a token has no principal")
		require.Equal(t, http.StatusOK, answer(t, client(t, key), id, "gate", `{"action":"accept"}`).Status)
		events, err := c.Finish(within(t, patience), id)
		require.NoError(t, err)
		require.Contains(t, string(events[5].Payload), map[string]string{opsKey: `"standing":{"groups":["ops"]}`, chiefKey: `"standing":{"roles":["chief"]}`}[key])
		require.Equal(t, key == chiefKey, strings.Contains(string(events[5].Payload), `"resolvedBy":"u-7"`))
	}
}

// OpenWOP host contract §6.3, override.
func TestInterrupt_CanBeOverridden(t *testing.T) {
	t.Parallel()
	c, boss := client(t, liveKey), client(t, chiefKey)
	const override = `{"action":"accept","override":true,"reason":"it burns"}`
	const suffix = " approval.overridden interrupt.resolved approval.received node.resumed node.completed run.completed"
	id, _ := suspended(t, c, "approve-force", "waiting-approval")
	require.Equal(t, http.StatusForbidden, answer(t, c, id, "gate", override).Status)
	a := answer(t, boss, id, "gate", `{"action":"accept","override":true}`)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "/resumeValue/reason")
	require.Equal(t, http.StatusOK, answer(t, boss, id, "gate", override).Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(strings.Join(names(events), " "), suffix), names(events))
	require.JSONEq(t, `{"gateId":"gate","principal":"u-7","reason":"it burns"}`, string(events[5].Payload))

	id, _ = suspended(t, c, "approve-chief", "waiting-approval")
	a = answer(t, boss, id, "gate", override)
	require.Equal(t, http.StatusOK, a.Status)
	require.Contains(t, string(a.Body), `"status":"waiting-approval"`, "one vote of two")
	require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"action":"accept","voter":"ann"}`).Status)
	events, err = c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(strings.Join(names(events), " "), suffix), names(events))
}

// Extension of this host: a waiting approval escalates, and each level has more approvers.
func TestInterrupt_Escalates(t *testing.T) {
	t.Parallel()
	c, ops := client(t, liveKey), client(t, opsKey)
	id, _ := suspended(t, c, "approve-later", "waiting-approval")
	var w struct {
		Interrupt struct{ Escalation struct{ Level int } }
	}
	require.Eventually(t, func() bool {
		require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+id, "").JSON(&w))
		return w.Interrupt.Escalation.Level == 2
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, http.StatusOK, answer(t, ops, id, "gate", `{"action":"accept"}`).Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	require.Equal(t, "approval.requested waybill.approval.escalated waybill.approval.escalated interrupt.resolved approval.received node.resumed node.completed run.completed",
		strings.Join(names(events)[4:], " "))
	a := do(t, c, http.MethodPost, "/v1/workflows", definition("approve-never", node("gate", "core.approvalGate", `{"title":"t","actions":["accept"],"timeoutSec":1,"escalation":[{"afterSec":2}]}`, "{}"), "", "", ""))
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "/nodes/0/config/escalation/0/afterSec")
}

// OpenWOP host contract §6.1, low-confidence.
func TestInterrupt_OpensAtLowConfidence(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, w := suspended(t, c, "unsure", "waiting-approval")
	require.JSONEq(t, `{"agentId":"core.sorter","threshold":0.7,"observed":0.4,"decision":"spam"}`, string(w.Interrupt.Payload["data"]))
	require.Equal(t, http.StatusOK, answer(t, c, id, "a", `{"decision":"ham"}`).Status)
	await(t, c, id, patience, "completed")
	_, events := run(t, c, `{"workflowId":"sure"}`)
	require.Equal(t, "run.started node.started node.completed run.completed", strings.Join(names(events), " "))
}

// Extension of this host: the list of open interrupts, for callers who may answer.
func TestInterrupt_AreListed(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, w := suspended(t, c, "approve-group", "waiting-approval")
	list := func(key, query string) (found bool) {
		for cursor := ""; ; {
			var page struct {
				Interrupts []struct {
					RunID, WorkflowID, Status string
					Interrupt                 struct{ InterruptID string }
				}
				NextCursor string
			}
			a := do(t, client(t, key), http.MethodGet, "/v1/interrupts?limit=200"+query+cursor, "")
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			require.NotContains(t, string(a.Body), "interruptToken")
			require.NoError(t, a.JSON(&page))
			for _, i := range page.Interrupts {
				found = found || i.RunID == id && i.Interrupt.InterruptID == w.Interrupt.InterruptID && i.Status == "waiting-approval" && i.WorkflowID == "approve-group"
			}
			if page.NextCursor == "" {
				return found
			}
			cursor = "&cursor=" + page.NextCursor
		}
	}
	require.True(t, list(liveKey, ""))
	require.True(t, list(opsKey, "&eligible=true&kind=approval&workflowId=approve-group"))
	require.False(t, list(liveKey, "&eligible=true"))
	require.False(t, list(liveKey, "&kind=custom"))
	require.False(t, list(otherKey, ""))
	require.Equal(t, http.StatusForbidden, do(t, client(t, readerKey), http.MethodGet, "/v1/interrupts", "").Status)
	require.Equal(t, http.StatusOK, answer(t, client(t, opsKey), id, "gate", `{"action":"accept"}`).Status)
	require.False(t, list(liveKey, "&workflowId=approve-group"))
}
