package accept_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §2.1: the members that a model may leave out are filled in, the same ones for
// the same document. Those that are there stay.
func TestCompleteModelOutput_FillsInWhatIsMissing(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	complete := func(doc string, change ...func(*accept.Request)) map[string]any {
		req := accept.Request{Target: accept.Target{Run: subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}}, Document: []byte(doc), NodeID: "n"}
		for _, c := range change {
			c(&req)
		}
		var out map[string]any
		require.NoError(t, json.Unmarshal(accept.CompleteModelOutput(req, at), &out))
		return out
	}
	bare := complete(`{"type":"error","payload":{"code":"x","message":"m"}}`)
	require.Regexp(t, `^env_[0-9a-f]{24}$`, bare["envelopeId"])
	require.Equal(t, "r:n:"+bare["envelopeId"].(string), bare["correlationId"])
	require.Equal(t, map[string]any{"source": "ai-generation", "ts": "2026-01-31T12:00:00.000Z"}, bare["meta"])
	require.Equal(t, bare, complete(`{"type":"error","payload":{"code":"x","message":"m"}}`))
	second := complete(`{"type":"error","payload":{"code":"x","message":"m"}}`, func(r *accept.Request) { r.Answer.Size, r.Answer.Index = 2, 1 })
	require.NotEqual(t, bare["envelopeId"], second["envelopeId"], "two equal envelopes of one answer are two")

	given := complete(`{"type":"error","envelopeId":"e","correlationId":"c","meta":{"source":"system","label":"L","ts":null},"payload":1}`)
	require.Equal(t, "e", given["envelopeId"])
	require.Equal(t, "c", given["correlationId"])
	require.Equal(t, map[string]any{"source": "system", "label": "L", "ts": "2026-01-31T12:00:00.000Z"}, given["meta"])

	nulls := complete(`{"type":"error","envelopeId":null,"correlationId":null,"meta":null,"payload":1}`)
	require.NotNil(t, nulls["envelopeId"])
	require.Equal(t, "ai-generation", nulls["meta"].(map[string]any)["source"])

	long := complete(`{"type":"error","payload":1}`, func(r *accept.Request) { r.NodeID = strings.Repeat("n", 128) })
	require.Len(t, long["correlationId"], 128)

	require.Equal(t, "text", complete(`{"type":"error","payload":1,"meta":"text"}`)["meta"], "the shape step refuses it")
	for _, raw := range []string{`[]`, `"x"`, `{}`, `{"type":`, ``} {
		require.Equal(t, raw, string(accept.CompleteModelOutput(accept.Request{Document: []byte(raw)}, at)))
	}
}
