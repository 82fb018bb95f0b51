package conformance

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/test/harness"
)

// parityCase is a call made on both sides. The first of an operation succeeds.
type parityCase struct {
	name    string
	build   func(*testing.T) call
	refused bool
	// exact requires equal bytes.
	exact bool
}

type params = map[string]string

// fixed is a call without side effects, so both sides make the same one.
func fixed(name string, exact, refused bool, c call) parityCase {
	if c.key == "" {
		c.key = testKey
	}
	return parityCase{name: name, exact: exact, refused: refused, build: func(*testing.T) call { return c }}
}

// fresh is a call on an object of its own.
func fresh(name string, refused bool, build func(*testing.T) call) parityCase {
	return parityCase{name: name, refused: refused, build: func(t *testing.T) call {
		t.Helper()
		c := build(t)
		if c.key == "" {
			c.key = testKey
		}
		return c
	}}
}

func query(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// ofNoRun returns calls for unknown runs and runs of another tenant.
func ofNoRun(s *sides, body string, more params) []parityCase {
	theirs, _ := run(s.t, client(s.t, otherKey), `{"workflowId":"noop"}`)
	with := func(id string) params {
		p := params{"run_id": id}
		for k, v := range more {
			p[k] = v
		}
		return p
	}
	return []parityCase{
		fixed("no such run", false, true, call{path: with("ghost"), body: body}),
		fixed("another tenant's run", false, true, call{path: with(theirs), body: body}),
	}
}

// after sends a request when the test ends.
func after(t *testing.T, c *harness.Client, method, path string) {
	t.Helper()
	t.Cleanup(func() {
		_, err := c.Do(context.WithoutCancel(t.Context()), method, path, "")
		require.NoError(t, err)
	})
}

// hookURL is never called: its tenant has no matching events.
const hookURL = `{"url":"https://8.8.8.8/hook","events":["run.completed"]}`

// newHook registers a webhook and deletes it after the test.
func newHook(t *testing.T) string {
	t.Helper()
	c := client(t, toggleKey)
	a := do(t, c, http.MethodPost, "/v1/webhooks", hookURL)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v struct{ WebhookID string }
	require.NoError(t, a.JSON(&v))
	after(t, c, http.MethodDelete, "/v1/webhooks/"+v.WebhookID)
	return v.WebhookID
}

// refusedOnly lists operations that cannot succeed here: no run is quarantined, and no delivery failed.
var refusedOnly = map[string]bool{
	// A failed delivery needs a receiver; services/gateway/webhook and the console's tests have one.
	hostv1.Host_RedeliverWebhookEvent_FullMethodName: true,
	hostv1.Host_RetryQuarantinedRun_FullMethodName:   true, hostv1.Host_EndQuarantinedRun_FullMethodName: true,
}

func parityCases(s *sides) map[string][]parityCase {
	t := s.t
	c := client(t, testKey)
	done, _ := run(t, c, `{"workflowId":"three","inputs":{"n":9007199254740993},"tags":["parity"]}`)
	second, _ := run(t, c, `{"workflowId":"three"}`)
	live := func(t *testing.T) string {
		t.Helper()
		id := create(t, c, `{"workflowId":"wait"}`).RunID
		after(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel")
		await(t, c, id, patience, "running", "waiting-timer")
		return id
	}
	asking := func(t *testing.T) (string, waiting) {
		t.Helper()
		id, w := suspended(t, c, "approve", "waiting-approval")
		after(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel")
		return id, w
	}
	const accept = `{"resumeValue":{"action":"accept"}}`
	token := func(body string) func(*testing.T) call {
		return func(t *testing.T) call {
			t.Helper()
			_, w := asking(t)
			return call{path: params{"token": w.Interrupt.InterruptToken}, body: body}
		}
	}
	ended := func(t *testing.T) string {
		t.Helper()
		id, _ := run(t, c, `{"workflowId":"noop"}`)
		return id
	}
	hold := func(t *testing.T, c *harness.Client, id string) {
		t.Helper()
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/hold", `{"reason":"r"}`)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
	held := func(t *testing.T) string {
		t.Helper()
		id := ended(t)
		hold(t, c, id)
		after(t, c, http.MethodDelete, "/v1/runs/"+id+"/hold")
		return id
	}
	theirs, _ := run(t, client(t, otherKey), `{"workflowId":"noop"}`)
	hold(t, client(t, otherKey), theirs)
	at := params{"run_id": done}
	ofNone := func(body string) []parityCase { return ofNoRun(s, body, nil) }
	return map[string][]parityCase{
		openwopv1.Engine_GetCapabilities_FullMethodName: {fixed("discovery", true, false, call{})},
		openwopv1.Engine_GetWorkflow_FullMethodName: {
			fixed("a definition", true, false, call{path: params{"workflow_id": "three"}}),
			fixed("none", false, true, call{path: params{"workflow_id": "ghost"}}),
		},
		openwopv1.Engine_CreateRun_FullMethodName: {
			fixed("a run", false, false, call{body: `{"workflowId":"noop","inputs":{"n":9007199254740993},"tags":["parity"]}`}),
			fixed("no workflow", false, true, call{body: `{"workflowId":"ghost"}`}),
			fixed("no workflowId", false, true, call{body: `{}`}),
			fixed("another tenant", false, true, call{body: `{"workflowId":"noop","tenantId":"beta"}`}),
			fixed("a missing input", false, true, call{body: `{"workflowId":"typed"}`}),
			fixed("what the host cannot do", false, true, call{body: `{"workflowId":"gated"}`}),
			fixed("too low a limit", false, true, call{body: `{"workflowId":"noop","configurable":{"recursionLimit":0}}`}),
		},
		openwopv1.Engine_GetRun_FullMethodName: append([]parityCase{fixed("a snapshot", true, false, call{path: at})}, ofNone("")...),
		openwopv1.Engine_CancelRun_FullMethodName: append([]parityCase{
			fixed("one that has ended", false, false, call{path: at}),
			fresh("a live run", false, func(t *testing.T) call { return call{path: params{"run_id": live(t)}, body: `{"reason":"r"}`} }),
		}, ofNone("")...),
		openwopv1.Engine_BulkCancelRuns_FullMethodName: {
			fixed("several", false, false, call{body: `{"runIds":["` + done + `","ghost"]}`}),
			fixed("none", false, true, call{body: `{"runIds":[]}`}),
		},
		openwopv1.Engine_ForkRun_FullMethodName: append([]parityCase{
			fixed("a branch", false, false, call{path: at, body: `{"mode":"branch","fromSeq":2}`}),
			fixed("from nowhere", false, true, call{path: at, body: `{"mode":"branch","fromSeq":4000}`}),
			fixed("an unknown mode", false, true, call{path: at, body: `{"mode":"copy","fromSeq":1}`}),
		}, ofNone(`{"mode":"branch","fromSeq":2}`)...),
		hostv1.Host_ForkNode_FullMethodName: append([]parityCase{
			fixed("outputs", false, false, call{path: params{"run_id": done, "node_id": "a"}, body: `{"outputs":{}}`}),
			fixed("nothing", false, true, call{path: params{"run_id": done, "node_id": "a"}, body: `{}`}),
			fixed("no such node", false, true, call{path: params{"run_id": done, "node_id": "ghost"}, body: `{"outputs":{}}`}),
		}, ofNoRun(s, `{"outputs":{}}`, params{"node_id": "a"})...),
		openwopv1.Engine_PauseRun_FullMethodName: append([]parityCase{
			fresh("a live run", false, func(t *testing.T) call { return call{path: params{"run_id": live(t)}} }),
			fixed("one that has ended", false, true, call{path: at}),
		}, ofNone("")...),
		openwopv1.Engine_ResumeRun_FullMethodName: append([]parityCase{
			fresh("a paused one", false, func(t *testing.T) call {
				id := live(t)
				a := do(t, c, http.MethodPost, "/v1/runs/"+id+":pause", `{"drainPolicy":"immediate"}`)
				require.Equal(t, http.StatusAccepted, a.Status, "%s", a.Body)
				await(t, c, id, patience, "paused")
				return call{path: params{"run_id": id}}
			}),
			fixed("one that has ended", false, true, call{path: at}),
		}, ofNone("")...),
		openwopv1.Engine_ResolveInterruptByRun_FullMethodName: append([]parityCase{
			fresh("an answer", false, func(t *testing.T) call {
				id, _ := asking(t)
				return call{path: params{"run_id": id, "node_id": "gate"}, body: accept}
			}),
			fresh("what is no answer", true, func(t *testing.T) call {
				id, _ := asking(t)
				return call{path: params{"run_id": id, "node_id": "gate"}, body: `{"resumeValue":{"action":"shrug"}}`}
			}),
			fixed("what does not wait", false, true, call{path: params{"run_id": done, "node_id": "a"}, body: accept}),
		}, ofNoRun(s, accept, params{"node_id": "gate"})...),
		hostv1.Host_AssignInterrupt_FullMethodName: append([]parityCase{
			fresh("a claim", false, func(t *testing.T) call {
				id, w := asking(t)
				return call{path: params{"run_id": id, "node_id": "gate"}, body: `{"interruptId":"` + w.Interrupt.InterruptID + `"}`}
			}),
			fresh("a name with a space", true, func(t *testing.T) call {
				id, _ := asking(t)
				return call{path: params{"run_id": id, "node_id": "gate"}, body: `{"assignee":"a b"}`}
			}),
			fresh("another question", true, func(t *testing.T) call {
				id, _ := asking(t)
				return call{path: params{"run_id": id, "node_id": "gate"}, body: `{"interruptId":"int_0"}`}
			}),
			fixed("what does not wait", false, true, call{path: params{"run_id": done, "node_id": "a"}, body: `{}`}),
		}, ofNoRun(s, `{}`, params{"node_id": "gate"})...),
		hostv1.Host_ReleaseInterrupt_FullMethodName: append([]parityCase{
			fresh("a claim", false, func(t *testing.T) call {
				id, _ := asking(t)
				require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/interrupts/gate/assignee", "").Status)
				return call{path: params{"run_id": id, "node_id": "gate"}}
			}),
			fixed("what does not wait", false, true, call{path: params{"run_id": done, "node_id": "a"}}),
		}, ofNoRun(s, "", params{"node_id": "gate"})...),
		hostv1.Host_ListSavedViews_FullMethodName: {fixed("of a tenant without views", true, false, call{key: otherKey})},
		hostv1.Host_PutSavedView_FullMethodName: {
			fixed("a view", false, false, call{body: `{"viewId":"parity","name":"Parity","filter":"status:failed","columns":["cost"],"shared":true}`}),
			fixed("an unknown term", false, true, call{body: `{"viewId":"parity","name":"Parity","filter":"bogus:1"}`}),
			fixed("nothing", false, true, call{body: `{}`}),
		},
		hostv1.Host_DeleteSavedView_FullMethodName: {
			fresh("a view", false, func(t *testing.T) call {
				a := do(t, c, http.MethodPost, "/v1/views", `{"viewId":"parity-gone","name":"Gone"}`)
				require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
				return call{path: params{"view_id": "parity-gone"}}
			}),
			fixed("no such view", false, true, call{path: params{"view_id": "ghost"}}),
		},
		openwopv1.Engine_ResolveInterruptByToken_FullMethodName: {
			fresh("an answer", false, token(accept)),
			fixed("no such token", false, true, call{path: params{"token": "nonsense"}, body: accept}),
		},
		openwopv1.Engine_InspectInterruptByToken_FullMethodName: {
			fresh("a question", false, token("")),
			fixed("no such token", false, true, call{path: params{"token": "nonsense"}}),
		},
		hostv1.Host_DiffRuns_FullMethodName: {
			fixed("two runs", true, false, call{path: at, query: query("against", second)}),
			fixed("a run and nothing", false, true, call{path: at, query: query("against", "ghost")}),
			fixed("a run alone", false, true, call{path: at}),
		},
		hostv1.Host_CreateAnnotation_FullMethodName: append([]parityCase{
			fixed("a mark", false, false, call{path: at, body: `{"signal":{"kind":"rating","rating":4},"note":"good"}`}),
			fixed("nothing", false, true, call{path: at, body: `{}`}),
		}, ofNone(`{"signal":{"kind":"rating","rating":4}}`)...),
		hostv1.Host_ListAnnotations_FullMethodName: append([]parityCase{fixed("those of a run", false, false, call{path: params{"run_id": second}})}, ofNone("")...),
		openwopv1.Engine_VerifyAuditLog_FullMethodName: {
			fixed("the log", false, false, call{key: toggleKey}),
		},
		hostv1.Host_ListAuditEntries_FullMethodName: {
			fixed("the first", false, false, call{key: toggleKey, query: query("limit", "1")}),
			fixed("from nowhere", false, true, call{key: toggleKey, query: query("cursor", "nonsense")}),
			fixed("the newest from a sequence", false, true, call{key: toggleKey, query: query("fromSeq", "1", "newestFirst", "true")}),
		},
		openwopv1.Engine_RegisterWebhook_FullMethodName: {
			fixed("one", false, false, call{key: toggleKey, body: hookURL}),
			fixed("a private address", false, true, call{key: toggleKey, body: `{"url":"https://127.0.0.1/hook"}`}),
			fixed("nowhere", false, true, call{key: toggleKey, body: `{}`}),
		},
		openwopv1.Engine_UnregisterWebhook_FullMethodName: {
			fresh("one", false, func(t *testing.T) call { return call{key: toggleKey, path: params{"webhook_id": newHook(t)}} }),
			fixed("none", false, true, call{key: toggleKey, path: params{"webhook_id": "ghost"}}),
		},
		hostv1.Host_ListWebhooks_FullMethodName: {fixed("those of a tenant", true, false, call{key: otherKey})},
		hostv1.Host_RotateWebhookSecret_FullMethodName: {
			fresh("one", false, func(t *testing.T) call { return call{key: toggleKey, path: params{"webhook_id": newHook(t)}} }),
			fixed("none", false, true, call{key: toggleKey, path: params{"webhook_id": "ghost"}}),
		},
		hostv1.Host_RedeliverWebhookEvent_FullMethodName: {
			fresh("one that did not fail", true, func(t *testing.T) call {
				return call{key: toggleKey, path: params{"webhook_id": newHook(t)}, body: `{"runId":"ghost","sequence":0}`}
			}),
			fixed("of no webhook", false, true, call{key: toggleKey, path: params{"webhook_id": "ghost"}, body: `{"runId":"ghost","sequence":0}`}),
			fixed("before the first event", false, true, call{key: toggleKey, path: params{"webhook_id": "ghost"}, body: `{"runId":"ghost","sequence":-1}`}),
		},
		hostv1.Host_ListWebhookDeliveries_FullMethodName: {
			fresh("of one", false, func(t *testing.T) call { return call{key: toggleKey, path: params{"webhook_id": newHook(t)}} }),
			fixed("of none", false, true, call{key: toggleKey, path: params{"webhook_id": "ghost"}}),
		},
		hostv1.Host_ListQuarantinedRuns_FullMethodName: {
			fixed("none", true, false, call{}),
			fixed("one that is not there", true, false, call{query: query("runId", "ghost")}),
			fixed("too many", false, true, call{query: query("limit", "100000")}),
		},
		hostv1.Host_RetryQuarantinedRun_FullMethodName: append([]parityCase{fixed("one that is not quarantined", false, true, call{path: at})}, ofNone("")...),
		hostv1.Host_EndQuarantinedRun_FullMethodName:   append([]parityCase{fixed("one that is not quarantined", false, true, call{path: at, body: `{"reason":"r"}`})}, ofNone("")...),
		hostv1.Host_DeleteRun_FullMethodName: append([]parityCase{
			fresh("one that has ended", false, func(t *testing.T) call { return call{path: params{"run_id": ended(t)}} }),
			fresh("a live run", true, func(t *testing.T) call { return call{path: params{"run_id": live(t)}} }),
			fresh("one with a hold", true, func(t *testing.T) call { return call{path: params{"run_id": held(t)}} }),
		}, ofNone("")...),
		hostv1.Host_EraseRuns_FullMethodName: {
			fixed("those of a tag", false, false, call{body: `{"filter":"tag:no-such-tag"}`}),
			fixed("all, but only counted", true, false, call{key: eraseKey, body: `{"all":true,"dryRun":true,"limit":200}`}),
			fixed("neither all nor some", false, true, call{body: `{}`}),
			fixed("all and some", false, true, call{body: `{"all":true,"filter":"tag:x"}`}),
			fixed("by a strange filter", false, true, call{body: `{"filter":"color:x"}`}),
			fixed("by a strange time", false, true, call{body: `{"endedBefore":"yesterday"}`}),
			fixed("by a strange cursor", false, true, call{body: `{"filter":"tag:x","cursor":"nonsense"}`}),
			fixed("live ones", false, true, call{body: `{"filter":"status:running"}`}),
			fixed("too many", false, true, call{body: `{"filter":"tag:x","limit":100000}`}),
		},
		hostv1.Host_EraseTenant_FullMethodName: {
			fixed("one without runs", false, false, call{key: eraseKey}),
			fixed("one with runs", false, true, call{key: otherKey}),
		},
		hostv1.Host_HoldRun_FullMethodName: append([]parityCase{
			fresh("one that has ended", false, func(t *testing.T) call {
				id := ended(t)
				after(t, c, http.MethodDelete, "/v1/runs/"+id+"/hold")
				return call{path: params{"run_id": id}, body: `{"reason":"r"}`}
			}),
			fixed("for no reason", false, true, call{path: at, body: `{}`}),
			fixed("for too long a reason", false, true, call{path: at, body: `{"reason":"` + strings.Repeat("r", 513) + `"}`}),
		}, ofNone(`{"reason":"r"}`)...),
		hostv1.Host_ReleaseRun_FullMethodName: append([]parityCase{
			fresh("one that is held", false, func(t *testing.T) call { return call{path: params{"run_id": held(t)}} }),
			fixed("one that is not held", false, false, call{path: at}),
		}, ofNone("")...),
		hostv1.Host_ListHolds_FullMethodName: {
			fixed("none", true, false, call{key: eraseKey}),
			fixed("one of a tenant", true, false, call{key: otherKey, query: query("limit", "1")}),
			fixed("by a strange cursor", false, true, call{query: query("cursor", "*")}),
			fixed("too many", false, true, call{query: query("limit", "100000")}),
		},
		hostv1.Host_GetSystem_FullMethodName:    {fixed("of the installation", false, false, call{})},
		hostv1.Host_GetRetention_FullMethodName: {fixed("of a tenant", false, false, call{key: eraseKey})},
		hostv1.Host_GetRunOwner_FullMethodName:  append([]parityCase{fixed("of a run that has ended", false, false, call{path: at})}, ofNone("")...),
		hostv1.Host_GetRunView_FullMethodName: append([]parityCase{
			fixed("of a run", true, false, call{path: at}),
			fixed("as of an event", true, false, call{path: at, query: query("at", "2")}),
			fixed("before the first event", false, true, call{path: at, query: query("at", "-1")}),
		}, ofNone("")...),
		hostv1.Host_GetNodeInput_FullMethodName: append([]parityCase{
			fixed("of a node", true, false, call{path: params{"run_id": done, "node_id": "a"}}),
			fixed("as of an event", true, false, call{path: params{"run_id": done, "node_id": "a"}, query: query("at", "100")}),
			fixed("before it started", false, true, call{path: params{"run_id": done, "node_id": "a"}, query: query("at", "0")}),
			fixed("before the first event", false, true, call{path: params{"run_id": done, "node_id": "a"}, query: query("at", "-1")}),
			fixed("of no node", false, true, call{path: params{"run_id": done, "node_id": "ghost"}}),
		}, ofNoRun(s, "", params{"node_id": "a"})...),
		hostv1.Host_ReadAnswer_FullMethodName: {
			fixed("an envelope", true, false, call{body: `{"text":"Here: {\"type\":\"error\",\"payload\":{\"code\":\"x\",\"message\":\"y\"}}"}`}),
			fixed("a payload", true, false, call{body: `{"text":"{\"n\":9007199254740993}","kind":"error","accepts":["error"]}`}),
			fixed("prose", true, false, call{body: `{"text":"no"}`}),
			fixed("of an unknown kind", false, true, call{body: `{"text":"{}","kind":"vendor.x.none"}`}),
		},
		hostv1.Host_PollRunEvents_FullMethodName: append([]parityCase{
			fixed("all", true, false, call{path: at}),
			fixed("the rest", true, false, call{path: at, query: query("lastSequence", "3", "limit", "2")}),
			fixed("before the first", false, true, call{path: at, query: query("lastSequence", "-2")}),
			fixed("far too many", false, true, call{path: at, query: query("limit", "100000")}),
		}, ofNone("")...),
		hostv1.Host_GetDebugBundle_FullMethodName: append([]parityCase{fixed("a bundle", false, false, call{path: at})}, ofNone("")...),
		hostv1.Host_GetRunArchive_FullMethodName:  append([]parityCase{fixed("an archive", false, false, call{path: at})}, ofNone("")...),
		hostv1.Host_ArchiveRuns_FullMethodName: { // this host has no archive
			fixed("none", false, false, call{body: `{"filter":"tag:no-such-tag"}`}),
			fixed("one", false, true, call{body: `{"runIds":["` + done + `"]}`}),
			fixed("one, but only counted", false, true, call{body: `{"runIds":["` + done + `"],"dryRun":true}`}),
			fixed("neither all nor some", false, true, call{body: `{}`}),
			fixed("all and some", false, true, call{body: `{"runIds":["a"],"all":true}`}),
		},
		hostv1.Host_ListRuns_FullMethodName: {
			fixed("by tag", false, false, call{query: query("tag", "no-such-tag")}),
			fixed("by a strange cursor", false, true, call{query: query("cursor", "nonsense")}),
			fixed("by a strange status", false, true, call{query: query("status", "asleep")}),
			fixed("by a strange value", false, true, call{query: query("sort", "colour")}),
		},
		hostv1.Host_CountRuns_FullMethodName: {
			fixed("by tag", true, false, call{query: query("filter", "tag:no-such-tag")}),
			fixed("by a strange filter", false, true, call{query: query("filter", "color:x")}),
		},
		hostv1.Host_BulkRetryRuns_FullMethodName: {
			fixed("one that is not there", false, false, call{body: `{"runIds":["ghost"]}`}),
			fixed("none", false, true, call{body: `{"runIds":[]}`}),
		},
		hostv1.Host_BulkDeleteRuns_FullMethodName: {
			fixed("one that is not there", false, false, call{body: `{"runIds":["ghost"]}`}),
			fixed("one twice", false, true, call{body: `{"runIds":["ghost","ghost"]}`}),
		},
		hostv1.Host_BulkAnnotateRuns_FullMethodName: {
			fixed("several", false, false, call{body: `{"runIds":["` + done + `","ghost"],"signal":{"kind":"flag"}}`}),
			fixed("nothing", false, true, call{body: `{"runIds":["` + done + `"]}`}),
		},
		hostv1.Host_ListInterrupts_FullMethodName: {
			fixed("those of a workflow", true, false, call{query: query("workflowId", "no-such-workflow")}),
			fixed("those answered on a day", true, false, call{query: query("answeredOn", "2001-01-01")}),
			fixed("by a strange cursor", false, true, call{query: query("cursor", "nonsense")}),
			fixed("by a strange day", false, true, call{query: query("answeredOn", "yesterday")}),
		},
		hostv1.Host_CountInterrupts_FullMethodName:       {fixed("of a tenant without runs", true, false, call{key: otherKey})},
		hostv1.Host_ListModelCapabilities_FullMethodName: {fixed("all", true, false, call{})},
		hostv1.Host_ListModelSubstitutions_FullMethodName: {
			fixed("of the last minutes", true, false, call{key: otherKey, query: query("since", time.Now().Add(-10*time.Minute).UTC().Format(time.RFC3339))}),
			fixed("from long ago", false, true, call{query: query("since", "2001-01-01T00:00:00Z")}),
			fixed("from a time that is none", false, true, call{query: query("since", "2h")}),
		},
		hostv1.Host_ListWorkflows_FullMethodName: {
			fixed("the first", false, false, call{key: otherKey, query: query("limit", "2")}),
			fixed("too many", false, true, call{query: query("limit", "100000")}),
		},
		hostv1.Host_ListWorkflowStatistics_FullMethodName: {
			fixed("without runs", true, false, call{query: query("workflowId", "no-such-workflow")}),
			fixed("of none", false, true, call{}),
		},
		hostv1.Host_GetStatistics_FullMethodName: {
			fixed("of a workflow without runs", true, false, call{query: query("workflowId", "no-such-workflow", "since", "2026-01-01T00:00:00Z", "until", "2026-01-02T00:00:00Z")}),
			fixed("of no time", false, true, call{query: query("since", "2026-01-02T00:00:00Z", "until", "2026-01-01T00:00:00Z")}),
			fixed("since a time that is none", false, true, call{query: query("since", "2h")}),
		},
		hostv1.Host_ListTenantStatistics_FullMethodName: {
			fixed("before there was any", true, false, call{query: query("since", "2020-01-01T00:00:00Z", "until", "2020-01-02T00:00:00Z")}),
			fixed("of no time", false, true, call{query: query("since", "2026-01-02T00:00:00Z", "until", "2026-01-01T00:00:00Z")}),
		},
		hostv1.Host_ListAnswers_FullMethodName: {
			fixed("of a workflow without runs", true, false, call{query: query("filter", "workflow:no-such-workflow")}),
			fixed("of all runs", false, false, call{query: query("limit", "5")}),
			fixed("of a strange outcome", false, true, call{query: query("outcome", "perhaps")}),
			fixed("too many", false, true, call{query: query("limit", "1000")}),
		},
		hostv1.Host_PutWorkflow_FullMethodName: {
			fixed("one that is there", false, false, call{body: workflows[0]}),
			fixed("one that cannot be", false, true, call{body: `{"id":"x"}`}),
		},
		hostv1.Host_ValidateWorkflow_FullMethodName: {
			fixed("one that is there", true, false, call{body: workflows[0]}),
			fixed("one that cannot be", true, false, call{body: `{"id":"x"}`}),
		},
		hostv1.Host_ListWorkflowVersions_FullMethodName: {
			fixed("one", true, false, call{path: params{"workflow_id": "three"}}),
			fixed("none", false, true, call{path: params{"workflow_id": "ghost"}}),
		},
		hostv1.Host_DiffWorkflow_FullMethodName: {
			fixed("one", true, false, call{path: params{"workflow_id": "three"}, query: query("from", "1")}),
			fixed("from nothing", false, true, call{path: params{"workflow_id": "three"}}),
			fixed("no such version", false, true, call{path: params{"workflow_id": "three"}, query: query("from", "9")}),
			fixed("none", false, true, call{path: params{"workflow_id": "ghost"}, query: query("from", "1")}),
		},
		hostv1.Host_DeleteWorkflow_FullMethodName: {
			fresh("one", false, func(t *testing.T) call {
				const id = "deleted-often" // the same content can be registered again
				a := do(t, c, http.MethodPost, "/v1/workflows", definition(id, node("a", "core.noop", "{}", "{}"), "", "", ""))
				require.Less(t, a.Status, 300, "%s", a.Body)
				return call{path: params{"workflow_id": id}}
			}),
			fixed("none", false, true, call{path: params{"workflow_id": "ghost"}}),
			fixed("no such version", false, true, call{path: params{"workflow_id": "three"}, query: query("version", "9")}),
		},
		hostv1.Host_GetEnvelopeSchema_FullMethodName: {
			fixed("one", true, false, call{path: params{"file": "error.schema.json"}}),
			fixed("none", false, true, call{path: params{"file": "ghost.schema.json"}}),
		},
	}
}
