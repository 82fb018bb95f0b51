package subject_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
)

func TestParse_ReversesFrame(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: "acme", WorkflowID: "wf-1", RunID: "run_9"}
	for _, kind := range []subject.Kind{subject.Start, subject.Step, subject.Wake, subject.End} {
		got, k, err := subject.Parse(run.Frame(kind))
		require.NoError(t, err)
		require.Equal(t, run, got)
		require.Equal(t, kind, k)
	}
}

func TestRun_WithoutWorkflowMatchesAny(t *testing.T) {
	t.Parallel()
	require.Equal(t, "openwop.events.acme.*.run_9.*", subject.Run{Tenant: "acme", RunID: "run_9"}.All())
}

// A token that widens a subscription would expose other tenants.
func TestToken_NeverHoldsAWildcardOrSeparator(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "*", ">", "a.b", "a b", "a*", "ü", "a\n", strings.Repeat("a", 129)} {
		require.False(t, subject.Token(bad), "%q", bad)
	}
	for _, good := range []string{"a", "run_01", "A-b_9", strings.Repeat("a", 128)} {
		require.True(t, subject.Token(good), good)
	}
}

func TestQueue_MatchesStartAndWakeFramesOnly(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"openwop.events.*.*.*.start", "openwop.events.*.*.*.wake"}, subject.Queue())
}

func FuzzParse(f *testing.F) {
	f.Add("openwop.events.a.b.c.start")
	f.Fuzz(func(t *testing.T, s string) {
		run, kind, err := subject.Parse(s)
		if err == nil {
			require.Equal(t, s, run.Frame(kind))
			require.NotContains(t, s, "*")
			require.NotContains(t, s, ">")
		}
	})
}
