package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/test/harness"
)

const seams = "/v1/host/sample/"

// modes are the ways to see a stream.
var modes = []string{"values", "debug", "messages", "updates"}

// read reads a run that has ended in every way there is, and gives what the
// proofs look at: its events and its state.
func (r *rig) read(runID string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	var shown []byte
	for _, path := range []string{"/v1/runs/" + runID, "/v1/runs/" + runID + "/events/poll", seams + "test/runs/" + runID + "/events"} {
		shown = append(shown, r.do(http.MethodGet, path, "").Body...)
	}
	r.do(http.MethodGet, "/v1/runs/"+runID+"/debug-bundle", "")
	r.do(http.MethodGet, seams+"test/otel/spans?runId="+runID, "")
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

// calls reads the run over gRPC.
func (r *rig) calls(ctx context.Context, runID string) {
	r.t.Helper()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.client.Key)
	var head, tail metadata.MD
	res, err := openwopv1.NewEngineClient(r.conn).GetRun(ctx, &openwopv1.GetRunRequest{RunId: runID}, grpc.Header(&head), grpc.Trailer(&tail))
	r.message("gRPC", res, err, head, tail)
}

// message keeps what a call gave: message, error, headers and trailers.
func (r *rig) message(where string, m proto.Message, err error, mds ...metadata.MD) {
	r.t.Helper()
	if m != nil && err == nil {
		b, merr := proto.Marshal(m)
		require.NoError(r.t, merr)
		r.add(where, b)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b, merr := proto.Marshal(status.Convert(err).Proto())
		require.NoError(r.t, merr)
		r.add(where+" errors", b)
		r.add(where+" errors", []byte(err.Error()))
	}
	for _, md := range mds {
		for name, values := range md {
			r.add(where+" metadata", fmt.Append(nil, name, ": ", values))
		}
	}
}

// end collects what is left once everything is planted, and what the host left
// behind when it has ended.
func (r *rig) end(batches []batch) {
	r.t.Helper()
	res, err := http.Get(r.host.Metrics) //nolint:noctx // the test's own host
	require.NoError(r.t, err)
	metrics, err := io.ReadAll(res.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, res.Body.Close())
	r.add("metrics", metrics)
	require.Eventually(r.t, func() bool { return len(r.spans.Spans()) > len(r.runs) }, 30*time.Second, 20*time.Millisecond)
	r.host.Kill()
	r.add("OTLP", r.spans.Bytes())
	log := r.out.bytes()
	r.add("log", log)
	n := 0
	for _, b := range batches {
		for _, it := range b.items {
			n++
			if !strings.HasPrefix(it.marker, "[REDACTED:shape.") { // an error masks some of these before
				require.True(r.t, bytes.Contains(log, []byte(it.marker)), "%s is not in the log of a definition that was skipped", it.marker)
			}
		}
	}
	require.Equal(r.t, n, bytes.Count(log, []byte("workflow skipped")))
	r.proved += n
	r.disk()
}

func (r *rig) disk() {
	r.t.Helper()
	require.NoError(r.t, filepath.WalkDir(r.host.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // G122: the test's own directory
		r.add("disk: "+filepath.Base(path), content)
		r.add("disk: names", []byte(path))
		return err
	}))
}
