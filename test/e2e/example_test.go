package e2e

import (
	"errors"
	"io"
	"net/http"
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

// The example run's events are the same bytes wherever they are read.
func TestExample_ReadsTheSameEverywhere(t *testing.T) {
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

func overSSE(t *testing.T, c *harness.Client, id string) []string {
	t.Helper()
	var out []string
	a, err := c.Stream(within(t, 20*time.Second), "/v1/runs/"+id+"/events?streamMode=debug", func(f harness.Frame) bool {
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
	ctx := metadata.AppendToOutgoingContext(within(t, 20*time.Second), "authorization", "Bearer dev-key")
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

// overNATS reads the run's frames with a consumer of one's own, as a service
// beside the host would, and checks their chain.
func overNATS(t *testing.T, h *harness.Host, id string) []string {
	t.Helper()
	nc, err := nats.Connect(h.NATS, nats.UserInfo("default", "dev-key"), nats.CustomInboxPrefix("_INBOX_default"))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx := within(t, 20*time.Second)
	cons, err := js.CreateConsumer(ctx, subject.Stream, jetstream.ConsumerConfig{
		Name: "default", FilterSubject: subject.Tenant("default"), AckPolicy: jetstream.AckExplicitPolicy,
	})
	require.NoError(t, err)
	var frames []*frame.Frame
	for {
		m, err := cons.Next(jetstream.FetchMaxWait(5 * time.Second))
		require.NoError(t, err)
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
