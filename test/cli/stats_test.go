package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestStats_ShowsWhatRunsDid(t *testing.T) {
	t.Parallel()
	h := harness.Start(t, "--demo-runs=false", "--index-payloads", "--api-key", "all=acme:*", "--api-key", "operator=acme:*,tenants:read", "--api-key", "other=beta:*")
	u, other := at(t, h.HTTP, "all"), at(t, h.HTTP, "other")
	u.ok("run", "start", "triage", "--set", "mail=I was charged twice for order 4711.", "--wait")
	other.ok("run", "start", "triage", "--set", "mail=I was charged twice for order 4712.", "--wait")

	text := u.ok("stats").out
	require.Regexp(t, `(?m)^runs +1 created, 1 completed, 0 failed, 0 cancelled$`, text)
	require.Regexp(t, `(?m)^WORKFLOW +RUNS +COMPLETED +FAILED`, text)
	require.Regexp(t, `(?m)^triage +1 +1 +0`, text)
	require.Regexp(t, `(?m)^sample/sample-1 +1`, text)
	doc := document(t, u.ok("stats", "--since", "7d", "--workflow", "triage", "-o", "json").out)
	require.EqualValues(t, 3600, doc["stepSeconds"])
	require.EqualValues(t, 86400, document(t, u.ok("stats", "--since", "366d", "-o", "json").out)["stepSeconds"])
	u.ok("stats", "--since", "366d", "--tenants")

	require.Regexp(t, `(?m)^acme +1`, u.ok("stats", "--tenants").out)
	require.NotContains(t, u.ok("stats", "--tenants", "-o", "json").out, "beta", "* does not include tenants:read")
	require.Equal(t, "acme\nbeta\n", at(t, h.HTTP, "operator").ok("stats", "--tenants", "-o", "name").out)
	for _, args := range [][]string{{"--since", "yesterday"}, {"--since", "9999d"}, {"--since", "0s"}, {"--since", "1h30d"}, {"--since", "367d"}, {"--since", "-1d"}, {"--tenants", "--workflow", "w"}} {
		require.Equal(t, 2, u.run(append([]string{"stats"}, args...)...).status, "%v", args)
	}

	require.Contains(t, u.ok("run", "list", "--search", "charged 4711").out, "triage")
	require.Contains(t, u.ok("run", "list", "--search", "4712").err, "no matching runs")
	require.Equal(t, 2, u.run("run", "list", "--search", "a").status)
}
