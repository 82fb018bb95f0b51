package sweep

import (
	"context"
	"net/http"
	"net/url"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
)

// fork forks a run and waits for the fork.
func (r *rig) fork(source string, body map[string]any, headers ...string) (runID string) {
	r.t.Helper()
	r.planted++
	return r.begun(r.do(http.MethodPost, "/v1/runs/"+source+":fork", mustJSON(body), headers...))
}

// forks plants in a branch's overlay, and replays a run that has the batch in many places: in the
// fork, and in the diff of both runs.
func (r *rig) forks(b batch, source string) {
	r.t.Helper()
	short := b.short()
	var replay string
	r.overGRPC(func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
		m, err := c.ForkRun(ctx, &openwopv1.ForkRunRequest{RunId: source, Mode: "replay"}, o...)
		replay = m.GetRunId()
		return m, err
	})
	r.joins(replay)
	r.prove(b, r.finish(replay), "what is approved", "comment", "edited", "answer to a question", "rejection")
	first := r.begin(map[string]any{"workflowId": "echo", "inputs": map[string]any{"text": b.at("input of the source"), b.at("name of an input"): 1}})
	r.finish(first)
	const most = 3000 // of 8 KiB of metadata: planted text can be longer in JSON
	parts := b.cut(most / 2)
	for _, part := range parts[:min(2, len(parts))] { // a creation accepts all of them through the same code
		tag := part.one(0, fits)
		branch := r.fork(first, map[string]any{"mode": "branch", "fromSeq": 2, "runOptionsOverlay": map[string]any{
			"metadata":     map[string]any{"m": part.at("branch's metadata")},
			"configurable": map[string]any{"own": part.at("branch's option"), part.at("name of an option"): 1},
			"tags":         []string{tag.at("tag of a branch")},
		}})
		shown := r.finish(branch)
		r.prove(part, shown, "branch's metadata", "branch's option", "name of an option")
		r.prove(tag, shown, "tag of a branch")
		r.prove(b, shown, "input of the source", "name of an input")
	}
	r.prove(b, r.differ(source, first), "what is approved", "answer to a question", "input of the source", "name of an input")
	for _, body := range []map[string]any{
		{"mode": short},
		{"mode": "branch", "fromSeq": short},
		{"mode": "branch", "fromSeq": 1 << 30},
		{short: 1},
		{"mode": "branch", "fromSeq": 1, "runOptionsOverlay": map[string]any{short: short}},
		{"mode": "branch", "fromSeq": 1, "runOptionsOverlay": map[string]any{"tags": short}},
		{"mode": "branch", "fromSeq": 1, "runOptionsOverlay": map[string]any{"configurable": map[string]any{"ai.provider": short}}},
		{"mode": "replay", "runOptionsOverlay": map[string]any{"metadata": map[string]any{short: short}}},
	} {
		r.reject(http.MethodPost, "/v1/runs/"+first+":fork", mustJSON(body))
	}
	r.reject(http.MethodPost, "/v1/runs/"+url.PathEscape(short)+":fork", `{"mode":"replay"}`)
	r.reject(http.MethodGet, "/v1/runs/"+first+":diff?against="+url.QueryEscape(short), "")
}

// differ returns the diff of two runs.
func (r *rig) differ(one, other string) string {
	r.t.Helper()
	r.overGRPC(func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
		return c.DiffRuns(ctx, &hostv1.DiffRunsRequest{RunId: other, Against: one}, o...)
	})
	a := r.into("diff", r.client, http.MethodGet, "/v1/runs/"+one+":diff?against="+other, "")
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	return string(a.Body)
}
