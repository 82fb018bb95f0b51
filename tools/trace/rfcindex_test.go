package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRFCIndex_ListsPartRuleCodeAndTest(t *testing.T) {
	t.Parallel()
	ledgers := map[string]*ledger{"envelopes": {Rules: []rule{
		{At: "16.3", Rule: "all met|dispatched", Code: list{"services/x/y.go#Z", "protocol/w"}, Test: list{"services/x#TestY"}},
		{At: "16.3", Rule: "another"},
		{At: "16.4", Rule: "absent one", Absent: "not advertised"},
	}}}
	f, err := parseRFCs([]byte("rfcs: [{rfc: '0031', title: gates, parts: [{at: §B step 2, rules: ['envelopes 16.3: all met', envelopes 16.4]}]}]"))
	require.NoError(t, err)
	page, err := rfcIndex(f, ledgers, map[string][]string{"0031 §B": {"[a.go](../a.go)"}})
	require.NoError(t, err)
	require.Contains(t, page, "## RFC 0031: gates\n")
	require.Contains(t, page, "| §B step 2 | envelopes §16.3: all met\\|dispatched | [x/y](../services/x/y.go) `Z`, [protocol/w](../protocol/w) | [services/x](../services/x) `TestY` |\n")
	require.Contains(t, page, "| §B step 2 | envelopes §16.4: absent one | not here: not advertised |  |\n")
	require.NotContains(t, page, "another")
	require.Contains(t, page, "| 0031 §B | [a.go](../a.go) |\n")
}

func TestRFCIndex_RejectsUnknownRules(t *testing.T) {
	t.Parallel()
	ledgers := map[string]*ledger{"host": {Rules: []rule{{At: "3.1", Rule: "a run has a status"}}}}
	for entry, want := range map[string]string{
		"host 3.1: no such start": "no such rule",
		"host 3.2":                "no such rule",
		"hosts 3.1":               `unknown ledger "hosts"`,
	} {
		_, err := rulesOf(ledgers, entry)
		require.ErrorContains(t, err, want)
	}
}

func TestCited_FindsCitationsInGoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a/b.go", "package b // RFC 0031 §B step 3, RFC 0073. RFC 3339\n// RFC 0073\n")
	write("a/c.md", "RFC 0031")
	write("node_modules/d.go", "// RFC 0031")
	got, err := cited(dir)
	require.NoError(t, err)
	link := "[a/b.go](../a/b.go)"
	require.Equal(t, map[string][]string{"0031 §B step 3": {link}, "0073": {link}}, got)
}

// The committed page equals the generated one: run `make gen` after a change.
func TestRFCIndex_IsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := rfcIndexOf("../..", "../../docs/rules/rfc.yaml", []string{"../../docs/rules/host.yaml", "../../docs/rules/envelopes.yaml"})
	require.NoError(t, err)
	got, err := os.ReadFile("../../docs/rfc-index.md")
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make gen")
}
