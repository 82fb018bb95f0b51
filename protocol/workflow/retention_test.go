package workflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

func TestParseRetention(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"unlimited": 0, "90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour, "36h": 36 * time.Hour, "1m30s": 90 * time.Second,
		"1s": time.Second, "36500d": workflow.MaxRetention,
	} {
		got, err := workflow.ParseRetention(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
		again, err := workflow.ParseRetention(workflow.FormatRetention(got))
		require.NoError(t, err, text)
		require.Equal(t, want, again, text)
	}
	for _, text := range []string{
		"", "0", "0d", "0s", "-1d", "-90h", "+1d", "999ms", "36501d", "70000d", "99999999999999999999d", "1.5d", "d", "90", "90 d",
		"90days", "Unlimited", "never", "NaN", "1e3h", "٩d", strings.Repeat("9", 400) + "h",
	} {
		_, err := workflow.ParseRetention(text)
		require.ErrorContains(t, err, `want days such as "90d"`, "%q", text)
	}
}

func TestRetention_OfADefinition(t *testing.T) {
	t.Parallel()
	doc := func(settings string) []byte {
		return []byte(`{"id":"w","name":"w","version":"1","nodes":[{"id":"n","typeId":"core.noop","name":"n","position":{"x":0,"y":0},
			"config":{},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":` + settings + `}`)
	}
	for settings, want := range map[string]time.Duration{
		`{"retention":"30d"}`: 30 * 24 * time.Hour, `{"retention":"unlimited"}`: 0,
	} {
		def, problems := workflow.Parse(doc(settings))
		require.Empty(t, problems)
		keep, ok := def.Retention()
		require.True(t, ok)
		require.Equal(t, want, keep)
	}
	def, problems := workflow.Parse(doc(`{}`))
	require.Empty(t, problems)
	_, ok := def.Retention()
	require.False(t, ok)
	for _, bad := range []string{`0`, `90`, `""`, `"0d"`, `"-1d"`, `null`, `{}`, `"soon"`} {
		_, problems := workflow.Parse(doc(`{"retention":` + bad + `}`))
		require.Len(t, problems, 1, bad)
		require.Equal(t, "/settings/retention", problems[0].Path)
		require.Contains(t, problems[0].Message, `want days such as "90d"`)
		// An earlier build stored it as a setting of another host.
		def, problems := workflow.ParseStored(doc(`{"retention":` + bad + `}`))
		require.Empty(t, problems, bad)
		_, ok := def.Retention()
		require.False(t, ok, bad)
	}
}
