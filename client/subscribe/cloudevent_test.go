package subscribe_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/client/subscribe"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// CloudEvents 1.0.2 §3: the required attributes, and those that docs/streams.md lists. The JSON event
// format (§3.1) has JSON data unchanged.
func TestCloudEvent_HasTheAttributesOfTheSpecification(t *testing.T) {
	t.Parallel()
	d := wire.Draft{Type: wire.EventRunStarted, Payload: []byte(`{"big":12345678901234567890}`)}
	e := subscribe.Event{
		Event: d.Place("run_1", 7, time.Date(2026, 5, 1, 12, 34, 56, 0, time.UTC)), Run: subject.Run{Tenant: "acme", WorkflowID: "orders", RunID: "run_1"},
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	got, err := json.Marshal(e.CloudEvent())
	require.NoError(t, err)
	var m map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(got, &m))
	require.Equal(t, string(e.AppendJSON(nil)), string(m["data"]), "the same bytes")
	delete(m, "data")
	rest, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"specversion": "1.0", "id": "`+e.EventID+`", "source": "/tenants/acme/workflows/orders", "type": "dev.openwop.run.started", "subject": "run_1",
		"time": "2026-05-01T12:34:56.000Z", "datacontenttype": "application/json", "partitionkey": "run_1", "sequence": "0000000007",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	}`, string(rest))
	e.TraceParent = ""
	got, err = json.Marshal(e.CloudEvent())
	require.NoError(t, err)
	require.NotContains(t, string(got), "traceparent")
}
