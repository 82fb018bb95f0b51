package sweep

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/test/double/openaicompat"
)

// Answers of people to waiting runs, and questions of models.

// voters is the number of votes that the quorum gate needs.
const voters = 3

// waitsFlow has a gate of each kind in sequence. Each answer is shown by the next gate that shows
// anything. The last one is a veto.
func waitsFlow() string {
	approval := func(actions string) string { return `{"title":"t","actions":[` + actions + `]` }
	from := func(from, output, to, input string) string {
		return strings.Replace(carries(from, to, input), `{`, fmt.Sprintf(`{"sourceOutput":%q,`, output), 1)
	}
	edges := []string{
		from("vote", "comment", "edit", "input"), from("edit", "editedArtifactData", "refine", "input"), follows("clarify", "refine"),
		follows("event", "clarify"), follows("own", "event"), carries("own", "made", "own"), follows("veto", "made"),
	}
	return graph("waits", edges,
		node("vote", "core.approvalGate", approval(`"accept","reject","ask"`)+fmt.Sprintf(`,"requiredApprovals":%d}`, voters), `{"input":{"type":"variable","variableName":"text"}}`),
		node("edit", "core.approvalGate", approval(`"accept","edit-accept"`)+`}`, "{}"),
		node("refine", "core.approvalGate", approval(`"accept","refine"`)+`}`, "{}"),
		node("clarify", "core.clarificationGate", `{"questions":[{"id":"q1","question":"which?"}]}`, "{}"),
		node("event", "core.interrupt", `{"kind":"external-event","data":{"eventType":"paid","correlation":{"order":7}}}`, "{}"),
		node("own", "core.interrupt", `{"kind":"custom","data":{"customKind":"any"}}`, "{}"),
		node("made", "core.noop", "{}", `{"twice":{"type":"expression","expression":"nodes.own.output + nodes.own.output"}}`),
		node("veto", "core.approvalGate", approval(`"accept","reject"`)+`}`, "{}"))
}

// waiting is the open question of a run.
type waiting struct {
	Interrupt struct {
		NodeID, InterruptToken string
		Payload                struct {
			Data struct{ Questions []struct{ ID string } }
		}
	}
}

// opened waits until a node of a run has an open question. It returns what the snapshot and the
// token's holder see of it.
func (r *rig) opened(runID, nodeID string) (w waiting, shown string) {
	r.t.Helper()
	r.await(runID, "interrupt.requested")
	require.Eventually(r.t, func() bool { // the read model may lag behind the stream
		a := r.do(http.MethodGet, "/v1/runs/"+runID, "")
		shown = string(a.Body)
		return a.JSON(&w) == nil && w.Interrupt.NodeID == nodeID
	}, 30*time.Second, 2*time.Millisecond, "node %s has no open question", nodeID)
	a := r.into("interrupt", r.client, http.MethodGet, "/v1/interrupts/"+w.Interrupt.InterruptToken, "")
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	return w, shown + string(a.Body)
}

// resolve sends an answer that must be accepted.
func (r *rig) resolve(path string, value any) {
	r.t.Helper()
	a := r.do(http.MethodPost, path, mustJSON(map[string]any{"resumeValue": value}))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
}

// waits plants in the answers to each kind of question: by credential and by token, over REST and
// gRPC, accepted and rejected.
func (r *rig) waits(b batch) (runID string) {
	r.t.Helper()
	short := b.short()
	runID = r.begin(map[string]any{"workflowId": "waits", "inputs": map[string]any{"text": b.at("what is approved")}, "tags": []string{hookTag}})
	at := "/v1/runs/" + runID + "/interrupts/"
	_, shown := r.opened(runID, "vote")
	r.prove(b, shown, "what is approved")
	r.votes(b, runID, at+"vote")

	w, shown := r.opened(runID, "edit")
	r.prove(b, shown, "comment")
	token := "/v1/interrupts/" + w.Interrupt.InterruptToken
	r.reject(http.MethodPost, token, mustJSON(map[string]any{"resumeValue": map[string]any{"action": short}}))
	r.reject(http.MethodPost, token, mustJSON(map[string]any{"resumeValue": map[string]any{"action": "accept"}, short: short}))
	r.resolve(token, map[string]any{"action": "edit-accept", "editedArtifactData": map[string]any{b.at("edited name"): []any{b.at("edited")}}})
	r.reject(http.MethodPost, token, mustJSON(map[string]any{"resumeValue": map[string]any{"action": "accept", "comment": short}}))

	w, shown = r.opened(runID, "refine")
	r.prove(b, shown, "edited name", "edited")
	r.overGRPC(func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
		return c.InspectInterruptByToken(ctx, &openwopv1.InspectInterruptByTokenRequest{Token: w.Interrupt.InterruptToken}, o...)
	})
	r.overGRPC(func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
		return c.ResolveInterruptByToken(ctx, &openwopv1.ResolveInterruptByTokenRequest{Token: w.Interrupt.InterruptToken, ResumeValue: document(map[string]any{
			"action": "refine", "decidedBy": short, "refineFeedback": map[string]any{"scope": "section", "sectionPath": b.at("section"), "itemIds": []string{short}, "text": b.at("feedback")},
		})}, o...)
	})

	_, _ = r.opened(runID, "clarify")
	r.reject(http.MethodPost, at+"clarify", mustJSON(map[string]any{"resumeValue": map[string]any{"answers": map[string]any{short: short}}}))
	r.reject(http.MethodPost, at+"clarify", mustJSON(map[string]any{"resumeValue": map[string]any{"answers": b.at("no answers")}}))
	r.resolve(at+"clarify", map[string]any{"answers": []any{map[string]any{"id": "q1", "answer": b.at("answer to a question")}}, b.at("name beside answers"): 1})

	_, _ = r.opened(runID, "event")
	r.reject(http.MethodPost, at+"event", mustJSON(map[string]any{"resumeValue": map[string]any{"order": short, short: short}}))
	r.resolve(at+"event", map[string]any{"order": 7, "more": b.at("event"), b.at("name in an event"): short})

	_, _ = r.opened(runID, "own")
	r.reject(http.MethodPost, "/v1/runs/"+runID+"/interrupts/"+url.PathEscape(short), mustJSON(map[string]any{"resumeValue": short}))
	r.overGRPC(func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
		return c.ResolveInterruptByRun(ctx, &openwopv1.ResolveInterruptByRunRequest{RunId: runID, NodeId: "own", ResumeValue: document(b.at("answer of any kind"))}, o...)
	})

	_, _ = r.opened(runID, "veto")
	r.resolve(at+"veto", map[string]any{"decision": "rejected", "feedback": b.at("rejection")})
	shown = r.finish(runID)
	require.Contains(r.t, shown, `"code":"interrupt_rejected"`)
	r.prove(b, shown, "what is approved", "comment", "own member of a vote", "edited", "edited name", "section", "feedback", "answer to a question", "name beside answers",
		"event", "name in an event", "answer of any kind", "rejection")
	require.GreaterOrEqual(r.t, strings.Count(shown, beginOf("answer of any kind")), 3, "an expression has seen the answer twice")
	r.delivered(b, runID, "what is approved", "comment", "edited", "feedback", "answer to a question", "event", "answer of any kind", "rejection")
	return runID
}

// votes plants in the question of a gate, and in the voters' names and reasons. All but the last
// vote are in the log without an event.
func (r *rig) votes(b batch, runID, path string) {
	r.t.Helper()
	const most = 2000 // of the characters of a question
	r.reject(http.MethodPost, path, mustJSON(map[string]any{"resumeValue": map[string]any{"action": b.at("no action")}}))
	r.reject(http.MethodPost, path, mustJSON(map[string]any{"resumeValue": map[string]any{"action": "accept", "voter": b.items[0].text + strings.Repeat("x", 256)}}))
	for _, part := range b.cut(most) {
		if len(part.at("question of an approver")) < 2*most {
			r.resolve(path, map[string]any{"action": "ask", "question": part.at("question of an approver")})
			r.noted = append(r.noted, planted{part, "question of an approver"})
		}
	}
	for i := range voters {
		who := b.one(i*len(b.items)/voters, fits)
		place := fmt.Sprint("voter ", i)
		vote := map[string]any{"action": "accept", "voter": who.at(place)}
		if i+1 < voters {
			r.resolve(path, vote)
			r.noted = append(r.noted, planted{who, place})
			continue
		}
		vote["comment"], vote[b.at("own member of a vote")] = b.at("comment"), 1
		r.resolve(path, vote)
	}
}

// questions plants in a model's question and in the answer, which goes back to the model.
func (r *rig) questions(b batch) {
	r.t.Helper()
	question := map[string]any{"id": b.short(), "question": b.at("model's question"), "schema": map[string]any{"description": b.at("model's schema")}, "context": map[string]any{b.at("model's context"): 1}}
	r.vendor.Enqueue(
		openaicompat.Reply{Pieces: cutAnywhere(mustJSON(map[string]any{"type": "clarification.request", "payload": map[string]any{"questions": []any{question}, "reasoning": b.at("model's reason")}}), 400)},
		openaicompat.Reply{Pieces: []string{envelope(b, kind, map[string]any{"note": "fine"})}})
	r.collect()
	runID := r.begin(map[string]any{"workflowId": "vendor-asks", "inputs": map[string]any{"text": "x"}, "tags": []string{hookTag}})
	w, shown := r.opened(runID, "n")
	r.prove(b, shown, "model's question", "model's schema")
	require.Len(r.t, w.Interrupt.Payload.Data.Questions, 1)
	id := w.Interrupt.Payload.Data.Questions[0].ID
	r.resolve("/v1/runs/"+runID+"/interrupts/n", map[string]any{"answers": map[string]any{id: b.at("answer to a model")}})
	shown = r.finish(runID)
	require.Contains(r.t, shown, `"type":"run.completed"`)
	r.prove(b, shown, "model's question", "model's schema", "answer to a model")
	asked := r.collect()["vendor"]
	require.Len(r.t, asked, 2)
	r.prove(b, string(asked[1].Body), "model's question", "answer to a model")
	r.delivered(b, runID, "model's question", "answer to a model")
}
