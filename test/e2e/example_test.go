package e2e

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/harness"
)

// The example run's events are the same bytes in every API.
func TestExample_ReadsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "its readers connect to --nats-addr")
	needsHost(t)
	h := harness.Start(t, "--nats-addr", "127.0.0.1:0")
	c := h.Client("dev-key")
	id := start(t, c, `{"workflowId":"triage","inputs":{"mail":"I was charged twice for order 12345. Refund me!"}}`)
	polled, snap := finish(t, c, harness.LoadSchemas(t), id)
	require.Equal(t, "completed", snap.Status)
	want := make([]string, len(polled))
	for i, e := range polled {
		want[i] = string(e.Raw)
	}
	require.Contains(t, names(polled), "artifact.created")
	require.Equal(t, want, overSSE(t, c, id), "SSE")
	require.Equal(t, want, overGRPC(t, h, id), "gRPC")
	require.Equal(t, want, overNATS(t, h, id), "NATS")
}

// Conditions, a loop and variables decide without a model (examples/order).
func TestExample_OrderTakesTheBranchOfItsTotal(t *testing.T) {
	t.Parallel()
	needsHost(t)
	c := harness.Start(t).Client("dev-key")
	schemas := harness.LoadSchemas(t)
	for branch, inputs := range map[string]string{
		"accept": `{"lines":[{"sku":"pen","quantity":3,"cents":120}]}`,
		"review": `{"lines":[{"sku":"pen","quantity":3000,"cents":120}]}`,
	} {
		events, snap := finish(t, c, schemas, start(t, c, `{"workflowId":"order","inputs":`+inputs+`}`))
		require.Equal(t, "completed", snap.Status)
		skipped := ""
		for _, e := range events {
			if e.Type == "node.skipped" {
				skipped += e.NodeID
			}
		}
		require.Equal(t, map[string]string{"accept": "review", "review": "accept"}[branch], skipped)
		require.Contains(t, string(events[len(events)-1].Payload), `"decision":"`+branch)
	}
	// An invalid expression is rejected at registration; a suspicious one gives a warning.
	const node = `{"id":"%s","typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}`
	doc := func(edges string) string {
		return `{"id":"odd","name":"o","version":"1","nodes":[` + strings.ReplaceAll(node, "%s", "a") + `,` + strings.ReplaceAll(node, "%s", "b") + `],"edges":[` + edges +
			`],"triggers":[],"variables":[],"metadata":{},"settings":{}}`
	}
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", doc(`{"id":"e","sourceNodeId":"a","targetNodeId":"b","condition":{"expression":"output > 1"}}`))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status, string(a.Body))
	require.Contains(t, string(a.Body), "/edges/0/condition/expression")
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/workflows", doc(""))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, string(a.Body))
	require.Contains(t, string(a.Body), `"rule":"unlinked"`)
}

func overSSE(t *testing.T, c *harness.Client, id string) []string {
	t.Helper()
	var out []string
	a, err := c.Stream(within(t, time.Minute), "/v1/runs/"+id+"/events?streamMode=debug", func(f harness.Frame) bool {
		out = append(out, f.Data)
		return true
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status)
	return out
}

func overGRPC(t *testing.T, h *harness.Host, id string) []string {
	t.Helper()
	conn, err := grpc.NewClient(h.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	ctx := metadata.AppendToOutgoingContext(within(t, time.Minute), "authorization", "Bearer dev-key")
	s, err := openwopv1.NewEngineClient(conn).StreamRunEvents(ctx, &openwopv1.StreamRunEventsRequest{RunId: id, StreamModes: []string{"debug"}})
	require.NoError(t, err)
	var out []string
	for {
		e, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out = append(out, string(e.GetData().GetJson()))
	}
}

// overNATS reads the run's frames from the tenant's consumer, like an external service, and checks
// their chain.
func overNATS(t *testing.T, h *harness.Host, id string) []string {
	t.Helper()
	nc, err := nats.Connect(h.NATS, nats.UserInfo("default", "dev-key"), nats.CustomInboxPrefix("_INBOX_default"))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx := within(t, time.Minute)
	cons, err := js.Consumer(ctx, subject.Stream, subject.Consumer("default", subject.DefaultConsumer))
	require.NoError(t, err)
	var frames []*frame.Frame
	for {
		m, err := cons.Next(jetstream.FetchMaxWait(5 * time.Second))
		require.NoError(t, err)
		require.NoError(t, m.Ack())
		f, err := frame.Parse(m.Subject(), m.Headers().Get, m.Data())
		require.NoError(t, err)
		if f.Run.RunID != id {
			continue
		}
		frames = append(frames, f)
		if f.Kind == subject.End {
			break
		}
	}
	require.NoError(t, frame.VerifyChain(frames))
	var out []string
	for _, f := range frames[1:] {
		docs, err := wire.SplitArray(f.Body)
		require.NoError(t, err)
		for _, d := range docs {
			out = append(out, string(d))
		}
	}
	return out
}
