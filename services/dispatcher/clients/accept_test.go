package clients_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// answering is an acceptor with one answer; it records its requests.
type answering struct {
	acceptorv1.AcceptorClient
	res *acceptorv1.AcceptResponse
	req *acceptorv1.AcceptRequest
}

func (a *answering) Accept(_ context.Context, in *acceptorv1.AcceptRequest, _ ...grpc.CallOption) (*acceptorv1.AcceptResponse, error) {
	a.req = in
	return a.res, nil
}

func placed(t *testing.T, typ wire.EventType, seq int) []byte {
	t.Helper()
	return wire.Draft{Type: typ, NodeID: "n"}.Place("r", seq, time.Unix(1_700_000_000, 0)).AppendJSON(nil)
}

func accept(t *testing.T, res *acceptorv1.AcceptResponse) (*answering, engine.Accepted, error) {
	t.Helper()
	client := &answering{res: res}
	res.Outcome, res.Head = []byte(`{"status":"accepted"}`), &runlogv1.Head{Pos: 9, Next: 7}
	got, err := clients.Acceptor{
		Client:        client,
		Registrations: clients.NewRegistrations(nil),
	}.Accept(t.Context(), subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"},
		frame.Head{Pos: 8, Next: 5}, wire.Trusted, model.AcceptRequest{NodeID: "n", Preceding: []wire.Draft{
			{Type: wire.EventProviderUsage, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n"}`), Trust: wire.Untrusted},
		}})
	return client, got, err
}

func TestAccept_SendsAndReturnsPrecedingEvents(t *testing.T) {
	t.Parallel()
	client, got, err := accept(t, &acceptorv1.AcceptResponse{
		Preceding: [][]byte{placed(t, wire.EventProviderUsage, 5)}, Events: [][]byte{placed(t, wire.EventArtifactCreated, 6)},
	})
	require.NoError(t, err)
	require.Len(t, client.req.GetPreceding(), 1)
	sent := client.req.GetPreceding()[0]
	require.Equal(t, "provider.usage", sent.GetType())
	require.JSONEq(t, `{"nodeId":"n"}`, string(sent.GetPayload()))
	require.Equal(t, "untrusted", sent.GetContentTrust())
	require.Equal(t, 5, got.Preceding[0].Sequence)
	require.Equal(t, 6, got.Outcome.Sequence, "that of the event which records the envelope")
	require.Len(t, got.Events, 1)
}

// An acceptor of an older release ignores unknown fields.
func TestAccept_WithAnOlderAcceptorPrecedingIsEmpty(t *testing.T) {
	t.Parallel()
	_, got, err := accept(t, &acceptorv1.AcceptResponse{Events: [][]byte{
		placed(t, wire.EventArtifactCreated, 5), placed(t, wire.EventLogAppended, 6),
	}})
	require.NoError(t, err)
	require.Empty(t, got.Preceding)
	require.Equal(t, 5, got.Outcome.Sequence)
}

func TestAccept_RefusesAnAnswerThatRecordsAPart(t *testing.T) {
	t.Parallel()
	_, _, err := accept(t, &acceptorv1.AcceptResponse{Preceding: [][]byte{
		placed(t, wire.EventProviderUsage, 5), placed(t, wire.EventProviderUsage, 6),
	}})
	require.ErrorContains(t, err, "sent 1 preceding events, and 2 were recorded")
}
