package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/workflow"
)

func withSettings(settings string) (*workflow.Definition, []workflow.Problem) {
	return workflow.Parse([]byte(`{"id":"wf","name":"wf","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},
		"nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{},"settings":` + settings + `}]}`))
}

func TestParse_RejectsInvalidAttempts(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]workflow.Problem{
		`{"maxRetries":-1}`:                              {Path: "/nodes/0/settings/maxRetries", Rule: workflow.RuleMaxRetries},
		`{"timeoutMs":0}`:                                {Path: "/nodes/0/settings/timeoutMs", Rule: workflow.RuleTimeout},
		`{"timeoutMs":"5s"}`:                             {Path: "/nodes/0/settings/timeoutMs", Rule: workflow.RuleTimeout},
		`{"onUnknownOutcome":"skip"}`:                    {Path: "/nodes/0/settings/onUnknownOutcome", Rule: workflow.RuleUnknownOutcome},
		`{"onUnknownOutcome":true}`:                      {Path: "/nodes/0/settings/onUnknownOutcome", Rule: workflow.RuleUnknownOutcome},
		`{"retry":3}`:                                    {Path: "/nodes/0/settings/retry", Rule: workflow.RuleRetry},
		`{"retry":{"max":3}}`:                            {Path: "/nodes/0/settings/retry/max", Rule: workflow.RuleRetry},
		`{"retry":{"maxRetries":1.5}}`:                   {Path: "/nodes/0/settings/retry/maxRetries", Rule: workflow.RuleRetry},
		`{"maxRetries":1,"retry":{"maxRetries":2}}`:      {Path: "/nodes/0/settings/retry/maxRetries", Rule: workflow.RuleExclusive},
		`{"retry":{"backoffMs":0}}`:                      {Path: "/nodes/0/settings/retry/backoffMs", Rule: workflow.RuleRetry},
		`{"retry":{"backoffMs":100000000}}`:              {Path: "/nodes/0/settings/retry/backoffMs", Rule: workflow.RuleRetry},
		`{"retry":{"multiplier":0.5}}`:                   {Path: "/nodes/0/settings/retry/multiplier", Rule: workflow.RuleRetry},
		`{"retry":{"multiplier":"2"}}`:                   {Path: "/nodes/0/settings/retry/multiplier", Rule: workflow.RuleRetry},
		`{"retry":{"backoffMs":1000,"maxBackoffMs":10}}`: {Path: "/nodes/0/settings/retry/maxBackoffMs", Rule: workflow.RuleRetry},
		`{"retry":{"onCapacity":"later"}}`:               {Path: "/nodes/0/settings/retry/onCapacity", Rule: workflow.RuleRetry},
		`{"retry":{"onCapacity":true}}`:                  {Path: "/nodes/0/settings/retry/onCapacity", Rule: workflow.RuleRetry},
	} {
		_, found := withSettings(settings)
		require.Len(t, found, 1, settings)
		require.Equal(t, want.Path, found[0].Path)
		require.Equal(t, want.Rule, found[0].Rule)
		require.NotEmpty(t, found[0].Message)
	}
}

func TestWaitsForCapacity_UnlessTheAuthorForbidsIt(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]bool{`{}`: true, `{"retry":{}}`: true, `{"retry":{"onCapacity":"wait"}}`: true, `{"retry":{"onCapacity":"fail"}}`: false} {
		def, found := withSettings(settings)
		require.Empty(t, found)
		require.Equal(t, want, def.Nodes[0].WaitsForCapacity(), settings)
	}
}

func TestOnUnknownOutcome_IsOneOfThreeOrUnset(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]workflow.UnknownOutcome{
		`{}`:                           workflow.OutcomeByType,
		`{"onUnknownOutcome":"retry"}`: workflow.OutcomeRetry,
		`{"onUnknownOutcome":"fail"}`:  workflow.OutcomeFail,
		`{"onUnknownOutcome":"ask"}`:   workflow.OutcomeAsk,
	} {
		def, found := withSettings(settings)
		require.Empty(t, found)
		require.Equal(t, want, def.Nodes[0].OnUnknownOutcome())
	}
}

func TestBackoff_FollowsThePolicy(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for settings, want := range map[string][]time.Duration{
		`{}`: {500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms},
		`{"retry":{"backoffMs":100,"multiplier":1}}`:                    {100 * ms, 100 * ms, 100 * ms},
		`{"retry":{"backoffMs":100,"multiplier":3,"maxBackoffMs":500}}`: {100 * ms, 300 * ms, 500 * ms},
		`{"retry":{"backoffMs":60000}}`:                                 {60000 * ms, 60000 * ms},
		`{"retry":{"multiplier":1.5}}`:                                  {500 * ms, 750 * ms, 1125 * ms, 1687 * ms},
	} {
		def, found := withSettings(settings)
		require.Empty(t, found)
		for i, w := range want {
			require.Equal(t, w, def.Nodes[0].Backoff(i+1), "%s, retry %d", settings, i+1)
		}
	}
}

// A wait is at least a millisecond, because a wait of zero sets no timer. Waits never get shorter.
func TestBackoff_IsBoundedAndNeverShrinks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(1, 86_400_000).Draw(t, "first")
		def, found := withSettings(fmt.Sprintf(`{"retry":{"backoffMs":%d,"multiplier":%g}}`, first, rapid.Float64Range(1, 10).Draw(t, "factor")))
		require.Empty(t, found)
		last := time.Duration(0)
		for _, attempt := range []int{1, 2, 3, 10, 100, 1_000_000} {
			wait := def.Nodes[0].Backoff(attempt)
			require.GreaterOrEqual(t, wait, max(last, time.Millisecond))
			require.LessOrEqual(t, wait, 24*time.Hour)
			last = wait
		}
	})
}

func TestRetry_SetsMaxRetries(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{`{"maxRetries":3}`, `{"retry":{"maxRetries":3}}`} {
		def, found := withSettings(settings)
		require.Empty(t, found)
		n, ok := def.Nodes[0].MaxRetries()
		require.True(t, ok)
		require.Equal(t, int64(3), n)
		require.Zero(t, def.Nodes[0].Timeout())
	}
	def, found := withSettings(`{"timeoutMs":1500}`)
	require.Empty(t, found)
	require.Equal(t, 1500*time.Millisecond, def.Nodes[0].Timeout())
}
