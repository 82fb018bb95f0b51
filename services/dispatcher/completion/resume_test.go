package completion_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §14.3 and §14.5: who takes a run over makes the attempt that
// was announced, and announces none a second time.
func TestResume_MakesTheAttemptThatWasAnnounced(t *testing.T) {
	t.Parallel()
	good, bad := mock.Entry{Content: `{"valid":true}`}, mock.Entry{Content: `{"valid":"no"}`}
	for name, tc := range map[string]struct {
		retries   []completion.Retry
		script    []mock.Entry
		want      string
		maxTokens int
		corrected bool
	}{
		"after a truncation":  {[]completion.Retry{{2, "truncation", ""}}, []mock.Entry{good}, "provider.usage", 200, false},
		"after two":           {[]completion.Retry{{2, "truncation", ""}, {3, "truncation", ""}}, []mock.Entry{good}, "provider.usage", 400, false},
		"after a mistake":     {[]completion.Retry{{2, "schema-violation", "want type boolean"}}, []mock.Entry{good}, "provider.usage", 100, true},
		"after one of each":   {[]completion.Retry{{2, "schema-violation", "want type boolean"}, {3, "truncation", ""}}, []mock.Entry{good}, "provider.usage", 200, false},
		"with one to go":      {[]completion.Retry{{2, "schema-violation", "x"}}, []mock.Entry{bad, good}, "provider.usage envelope.retry.attempted provider.usage", 100, true},
		"with none to go":     {[]completion.Retry{{2, "parse-error", "x"}, {3, "parse-error", "x"}}, []mock.Entry{bad}, "provider.usage envelope.retry.exhausted cap.breached", 100, true},
		"with nothing at all": {nil, []mock.Entry{good}, "provider.usage", 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := executeTask(t, completion.Task{
				TypeID: node.TypeStructuredOutput, Retries: tc.retries, Input: node.Input{Config: json.RawMessage(valueConfig)},
			}, acceptAll, tc.script...)
			require.Equal(t, tc.want, r.names())
			first := r.spy.reqs[0]
			require.Equal(t, tc.maxTokens, first.MaxTokens)
			require.Len(t, first.Messages, map[bool]int{true: 2, false: 1}[tc.corrected])
			if tc.corrected {
				require.Contains(t, string(first.Messages[1].Content), tc.retries[0].Detail)
			}
			if r.result.Err != nil {
				require.Contains(t, r.payload(t, wire.EventEnvelopeRetryExhausted), `"totalAttempts":3`)
			}
		})
	}
}
