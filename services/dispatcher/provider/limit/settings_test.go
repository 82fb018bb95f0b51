package limit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

func TestParse_UsesOneEntryPerProvider(t *testing.T) {
	t.Parallel()
	all, err := limit.Parse([]byte(`{"providers":{"a":{"maxConcurrent":3,"timeouts":{"callMs":7200000}},"*":{"tokensPerMinute":10}}}`), limit.Host{Providers: &settings.Names{Known: []string{"a", "b"}}})
	require.NoError(t, err)
	require.Equal(t, 3, all.For("a").MaxConcurrent)
	require.Zero(t, all.For("a").TokensPerMinute)
	require.Equal(t, 2*time.Hour, all.For("a").Millis.Timeouts().Call)
	require.Equal(t, 2*time.Hour, all.For("a").MaxTimeout(), "never below the provider's own limits")
	require.Equal(t, 10, all.For("b").TokensPerMinute)
	require.Equal(t, time.Hour, all.For("b").MaxTimeout())
	require.Zero(t, (*limit.All)(nil).For("a"))
}

func TestParse_ReportsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{`:                                      "",
		`{"providers":{}}`:                       "at least one provider",
		`{"providers":{"a":{"maxConcurent":3}}}`: `at "/providers/a/maxConcurent": unknown member; allowed here: api, aws, baseUrl, body, google, headers, key, maxConcurrent, maxTimeoutMs, onError, promptCaching, query, reasoningEffort, requestsPerMinute, retries, secretHeaders, timeouts, tokensPerMinute; did you mean maxConcurrent?`,
		`{"providers":{"a":{"maxConcurrent":-3}}}`:               `"/providers/a/maxConcurrent": -3: want 0`,
		`{"providers":{"a":{"tokensPerMinute":-1}}}`:             `tokensPerMinute`,
		`{"providers":{"a":{"timeouts":{"silenceMs":-1}}}}`:      `"/providers/a/timeouts/silenceMs": -1: want milliseconds from 1 to 604800000`,
		`{"providers":{"a":{"timeouts":{"callMs":604800001}}}}`:  `callMs`,
		`{"providers":{"a":{"maxTimeoutMs":-1}}}`:                `maxTimeoutMs`,
		`{"providers":{"opnai":{}}}`:                             `no such provider; there are a`,
		`{"providers":{"a":{"maxConcurrent":"many"}}}`:           `at "/providers/a/maxConcurrent": want a number, got a string`,
		`{"providers":{"a":{},"a":{}}}`:                          "",
		`{"providers":{"a":{"maxConcurrent":1,"x":1}},"more":1}`: `at "/more": unknown member; allowed here: $schema, providers`,
	} {
		_, err := limit.Parse([]byte(doc), limit.Host{Providers: &settings.Names{Known: []string{"a"}}})
		require.Error(t, err, doc)
		require.Contains(t, err.Error(), want, doc)
	}
}

func TestParse_ReportsAllErrors(t *testing.T) {
	t.Parallel()
	_, err := limit.Parse([]byte(`{"providers":{"opnai":{"maxConcurent":1},"a":{"maxConcurrent":-1,"tokensPerMinute":"x","timeouts":{"callMs":-1,"silenceMs":-2}}}}`), limit.Host{Providers: &settings.Names{Known: []string{"a"}}})
	require.EqualError(t, err, `line 1, at "/providers/opnai/maxConcurent": unknown member; allowed here: api, aws, baseUrl, body, google, headers, key, maxConcurrent, maxTimeoutMs, onError, promptCaching, query, reasoningEffort, requestsPerMinute, retries, secretHeaders, timeouts, tokensPerMinute; did you mean maxConcurrent?
line 1, at "/providers/a/tokensPerMinute": want a number, got a string
line 1, at "/providers/a/maxConcurrent": -1: want 0 (no limit) or more
line 1, at "/providers/a/timeouts/silenceMs": -2: want milliseconds from 1 to 604800000, or 0 for the default
line 1, at "/providers/a/timeouts/callMs": -1: want milliseconds from 1 to 604800000, or 0 for the default
line 1, at "/providers/opnai": no such provider; there are a; * is all others; an entry with baseUrl is a provider of its own`)
}
