package fold_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const used = `{"nodeId":"n","provider":"p","model":"m",`

func TestCost_SumsWhatProvidersReport(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name           string
		steps          []step
		total, retries string
	}{
		{
			"a retry",
			[]step{
				{0, "node.started", `{"nodeId":"n","attempt":0}`},
				{0, "provider.usage", used + `"inputTokens":10,"outputTokens":1,"costEstimateUsd":0.5}`},
				{0, "envelope.retry.attempted", `{"nodeId":"n","attempt":2}`},
				{0, "provider.usage", used + `"inputTokens":20,"outputTokens":2,"costEstimateUsd":0.25}`},
				{0, "node.completed", `{"nodeId":"n"}`},
			},
			`{"calls":2,"unknown":0,"inputTokens":30,"outputTokens":3,"cost":0.75,"currency":"USD"}`,
			`{"calls":1,"unknown":0,"inputTokens":20,"outputTokens":2,"cost":0.25,"currency":"USD"}`,
		},
		{
			"a call without usage is counted, and is not zero",
			[]step{
				{0, "node.started", `{"nodeId":"n","attempt":0}`},
				{0, "output.chunk", `{"nodeId":"n","isLast":true,"meta":{"model":"m"}}`},
				{0, "node.completed", `{"nodeId":"n"}`},
			},
			`{"calls":1,"unknown":1}`, `{"calls":0,"unknown":0}`,
		},
		{
			"sums are exact beyond 64 bits",
			[]step{
				{0, "provider.usage", used + `"inputTokens":9007199254740993,"outputTokens":2,"cacheReadTokens":9223372036854775807}`},
				{0, "provider.usage", used + `"inputTokens":9007199254740993,"outputTokens":2,"cacheReadTokens":9223372036854775807}`},
				{0, "provider.usage", used + `"inputTokens":1,"outputTokens":2,"cacheReadTokens":9223372036854775807}`},
			},
			`{"calls":3,"unknown":0,"inputTokens":18014398509481987,"outputTokens":6,"cachedTokens":27670116110564327421,"currency":"USD"}`,
			`{"calls":2,"unknown":0,"inputTokens":9007199254740994,"outputTokens":4,"cachedTokens":18446744073709551614,"currency":"USD"}`,
		},
		{
			"thoughts of the next call of the node, if they are reported",
			[]step{
				{0, "node.started", `{"nodeId":"n","attempt":0}`},
				{0, "log.appended", `{"nodeId":"n","fields":{"reason":"model_usage","reasoningTokens":7}}`},
				{0, "provider.usage", used + `"inputTokens":10,"outputTokens":9}`},
				{0, "provider.usage", used + `"inputTokens":1,"outputTokens":2}`},
				{0, "log.appended", `{"nodeId":"n","fields":{"reason":"another","reasoningTokens":100}}`},
				{0, "log.appended", `{"nodeId":"n","fields":{"reason":"model_usage","reasoningTokens":"x"}}`},
				{0, "provider.usage", used + `"inputTokens":1,"outputTokens":2}`},
			},
			`{"calls":3,"unknown":0,"inputTokens":12,"outputTokens":13,"reasoningTokens":7,"currency":"USD"}`,
			`{"calls":2,"unknown":0,"inputTokens":2,"outputTokens":4,"currency":"USD"}`,
		},
		{
			"a value that is no number is unknown",
			[]step{{0, "provider.usage", used + `"inputTokens":"","outputTokens":null,"cacheReadTokens":1.5,"costEstimateUsd":"1"}`}},
			`{"calls":1,"unknown":1,"currency":"USD"}`, `{"calls":0,"unknown":0}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cost := run(t, tc.steps...).Cost
			total, err := json.Marshal(cost.Total)
			require.NoError(t, err)
			require.Equal(t, tc.total, string(total))
			retries, err := json.Marshal(cost.Retries)
			require.NoError(t, err)
			require.Equal(t, tc.retries, string(retries))
		})
	}
}
