package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpecMap_NamesSectionPackageAndTest(t *testing.T) {
	t.Parallel()
	page := specMap([]*ledger{{Contract: "A contract", Rules: []rule{
		{At: "3.1", Rule: "a|b", Code: list{"services/x/y.go#Z", "services/x/z.go", "internal/w"}, Test: list{"services/x#TestY", "services/x#TestZ", "test/e2e#TestE/case"}},
		{At: "3.2", Rule: "c", Absent: "not needed"},
	}}})
	require.Contains(t, page, "## A contract\n\n2 rules, 1 of them not this host's.\n")
	require.Contains(t, page, "| §3.1 | a\\|b | [services/x](../services/x), [internal/w](../internal/w) | [services/x](../services/x) `TestY` `TestZ`, [test/e2e](../test/e2e) `TestE/case` |\n")
	require.Contains(t, page, "| §3.2 | c | not here: not needed |  |\n")
}

// The committed page equals the generated one: run `make gen` after a change.
func TestSpecMap_IsWrittenDown(t *testing.T) {
	t.Parallel()
	want, err := mapOf([]string{"../../docs/rules/host.yaml", "../../docs/rules/envelopes.yaml"})
	require.NoError(t, err)
	got, err := os.ReadFile("../../docs/spec-map.md")
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make gen")
}
