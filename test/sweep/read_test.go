package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/test/harness"
)

const seams = "/v1/host/sample/"

// modes are the stream modes.
var modes = []string{"values", "debug", "messages", "updates"}

// read reads an ended run through every API, and returns its events and its state for the proofs.
func (r *rig) read(runID string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	var shown []byte
	for _, path := range []string{"/v1/runs/" + runID, "/v1/runs/" + runID + "/events/poll", seams + "test/runs/" + runID + "/events"} {
		shown = append(shown, r.do(http.MethodGet, path, "").Body...)
	}
	for _, a := range []*harness.Answer{
		r.into("bundle", r.client, http.MethodGet, "/v1/runs/"+runID+"/debug-bundle", ""),
		r.into("bundle", r.client, http.MethodPost, seams+"test/debug-bundle/export", `{"runId":"`+runID+`"}`),
		r.into("view", r.client, http.MethodGet, "/v1/runs/"+runID+":view", ""),
		r.into("spans", r.client, http.MethodGet, seams+"test/otel/spans?runId="+runID, ""),
	} {
		require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	}
	for _, mode := range modes {
		_, err := r.client.Stream(ctx, "/v1/runs/"+runID+"/events?streamMode="+mode, func(f harness.Frame) bool {
			r.add("SSE", []byte(f.Event+" "+f.ID+" "+f.Data+" "+f.Comment))
			return true
		})
		require.NoError(r.t, err)
	}
	r.calls(ctx, runID)
	return string(shown)
}

// message records the result of a call: message, error, headers and trailers.
func (r *rig) message(where string, m proto.Message, err error, mds ...metadata.MD) {
	r.t.Helper()
	if m != nil && err == nil {
		b, merr := proto.Marshal(m)
		require.NoError(r.t, merr)
		r.add(where, b)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.failure(where, err)
	}
	for _, md := range mds {
		for name, values := range md {
			r.add(where+" metadata", fmt.Append(nil, name, ": ", values))
		}
	}
}

// lists are the REST paths not about a single run.
var lists = []string{
	"/v1/runs?limit=100", "/v1/webhooks?limit=100", "/v1/workflows?limit=100", "/v1/workflows/ask", "/.well-known/openwop", "/v1/openapi.json", "/healthz", "/readyz",
	"/schemas/envelopes/" + kind + ".schema.json", seams + "node-catalog", seams + "test/mock-ai/last-dispatch-budget?nodeId=" + askNode,
}

// inside are pages of the operator's port.
var inside = []string{
	"/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1",
	"/debug/pprof/allocs?debug=0", "/debug/pprof/threadcreate?debug=1",
}

func (r *rig) operator(path string) {
	r.t.Helper()
	res, err := http.Get(strings.TrimSuffix(r.host.Metrics, "/metrics") + path) //nolint:noctx // the test's own host
	require.NoError(r.t, err)
	body, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, res.Body.Close())
	r.add("operator's port", body)
	for name, values := range res.Header {
		r.add("operator's port", fmt.Append(nil, name, ": ", values))
	}
}

// failure records the status of a failed call, on the wire and in the client's form.
func (s *sinks) failure(where string, err error) {
	b, merr := proto.Marshal(status.Convert(err).Proto())
	if merr != nil {
		b = []byte(merr.Error())
	}
	s.add(where+" errors", b)
	s.add(where+" errors", []byte(err.Error()))
}

// traced waits for the spans of most runs. The exporter drops spans under load, and crashes lose
// some.
func (r *rig) traced() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		ended := map[any]bool{}
		for _, s := range r.spans.Spans() {
			if s.Name == "openwop.run" {
				ended[s.Attributes["openwop.run_id"]] = true
			}
		}
		return len(ended) >= len(r.runs)*3/4
	}, 60*time.Second, 50*time.Millisecond)
}

// audits reads the whole audit log, and fails unless the planted texts arrived.
func (r *rig) audits() {
	r.t.Helper()
	var all strings.Builder
	for cursor, next := "", true; next; next = cursor != "" {
		a := r.into("audit", r.client, http.MethodGet, "/v1/audit?limit=200"+cursor, "")
		require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
		all.Write(a.Body)
		var page struct{ NextCursor string }
		require.NoError(r.t, a.JSON(&page))
		if cursor = ""; page.NextCursor != "" {
			cursor = "&cursor=" + page.NextCursor
		}
	}
	a := r.into("audit", r.client, http.MethodGet, "/v1/audit/verify", "")
	require.Contains(r.t, string(a.Body), `"chainValid":true`)
	limit := int32(200)
	for _, call := range []func(context.Context, clients, ...grpc.CallOption) (proto.Message, error){
		func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
			return c.ListAuditEntries(ctx, &hostv1.ListAuditEntriesRequest{Limit: &limit}, o...)
		},
		func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
			return c.VerifyAuditLog(ctx, &openwopv1.VerifyAuditLogRequest{}, o...)
		},
		func(ctx context.Context, c clients, o ...grpc.CallOption) (proto.Message, error) {
			return c.ListWebhooks(ctx, &hostv1.ListWebhooksRequest{}, o...)
		},
	} {
		r.overGRPC(call)
	}
	for _, p := range r.audited {
		r.prove(p.batch, all.String(), p.place)
	}
}

// end stops the host as given and collects the remaining outputs and files.
func (r *rig) end(batches []batch, stop func(*harness.Host), last string) {
	r.t.Helper()
	for _, path := range lists {
		a := r.do(http.MethodGet, path, "")
		require.Equal(r.t, http.StatusOK, a.Status, path)
	}
	for _, path := range inside {
		r.operator(path)
	}
	r.overNATS()
	r.audits()
	r.traced()
	stop(r.host)
	r.add("OTLP", r.spans.Bytes())
	log := r.out.bytes()
	r.add("log", log)
	r.gates(log)
	require.True(r.t, bytes.Contains(log, []byte(last)), "the host returned nothing about %s", last)
	n := 0
	for _, b := range batches {
		for _, it := range b.items {
			n++
			if !r.blind && !strings.HasPrefix(it.marker, "[REDACTED:shape.") { // an error masks some of these earlier
				require.True(r.t, bytes.Contains(log, []byte(it.marker)), "%s is not in the log of a definition that was skipped", it.marker)
			}
		}
	}
	require.Equal(r.t, n, bytes.Count(log, []byte("workflow skipped")))
	r.proved += n
	r.disk()
}
