package project_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// C3d: a row says who has to act.
func TestWaits_NamesTheNodeAtWorkAndTheQuestion(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(logtest.RunStarted, logtest.Node("n1")[0])
	require.JSONEq(t, `{"for":"node","nodeId":"n1","attempt":1,"since":"2026-03-01T12:00:00.001Z"}`, projected(t, log).Row().Waits)
	w.Step(
		wire.Draft{Type: wire.EventNodeSuspended, NodeID: "n1", Payload: json.RawMessage(`{"reason":"approval"}`)},
		wire.Draft{Type: wire.EventInterruptRequested, NodeID: "n1", Payload: json.RawMessage(
			`{"kind":"approval","nodeId":"n1","interruptId":"i","requestedAt":"2026-03-01T12:00:00.003Z","timeoutMs":60000,"data":{}}`)},
	)
	require.JSONEq(t, `{"for":"approval","nodeId":"n1","since":"2026-03-01T12:00:00.003Z","dueAt":"2026-03-01T12:01:00.003Z","questions":1}`,
		projected(t, log).Row().Waits)
}
