package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	someCode = "package p\n\ntype T struct{}\n\nfunc (T) Keep() {}\n\nconst Limit = 1\n"
	someTest = "package p\n\nimport \"testing\"\n\nfunc TestKeep(t *testing.T) { t.Run(\"case 7\", nil) }\n\n" +
		"func TestLater(t *testing.T) { t.Skip() }\n\nfunc TestEmpty(t *testing.T) {}\n"
)

// repository is a tree with a package p.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "p"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "p", "p.go"), []byte(someCode), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "p", "p_test.go"), []byte(someTest), 0o600))
	return root
}

func TestHoles_AreRulesThatLeadNowhere(t *testing.T) {
	t.Parallel()
	const kept = "rule: r, code: p/p.go#Keep, test: p#TestKeep"
	tests := map[string]struct {
		rules string
		holes []string // expected messages
	}{
		"a rule with code and test":         {rules: `{at: "2", ` + kept + `}`},
		"a constant, a type and a folder":   {rules: `{at: "2", rule: r, code: [p/p.go#Limit, "p#T", p], test: p#TestKeep/case_7}`},
		"a subtest with a space":            {rules: `{at: "2", rule: r, code: p, test: "p#TestKeep/case 7"}`},
		"a reason instead":                  {rules: `{at: "2", rule: r, absent: the consumer's duty}`},
		"no test":                           {rules: `{at: "2", rule: r, code: p}`, holes: []string{"needs code and test"}},
		"no code":                           {rules: `{at: "2", rule: r, test: p#TestKeep}`, holes: []string{"needs code and test"}},
		"no words":                          {rules: `{at: "2", code: p, test: p#TestKeep}`, holes: []string{"needs a place"}},
		"both code and a reason":            {rules: `{at: "2", ` + kept + `, absent: why}`, holes: []string{"marked absent"}},
		"a file that is gone":               {rules: `{at: "2", rule: r, code: p/q.go, test: p#TestKeep}`, holes: []string{"no such file"}},
		"a name that is gone":               {rules: `{at: "2", rule: r, code: p/p.go#Gone, test: p#TestKeep}`, holes: []string{"declares no Gone"}},
		"a test that is gone":               {rules: `{at: "2", rule: r, code: p, test: p#TestGone}`, holes: []string{"has no TestGone"}},
		"a test of a folder that is gone":   {rules: `{at: "2", rule: r, code: p, test: q#TestKeep}`, holes: []string{"no such folder"}},
		"a test without its folder":         {rules: `{at: "2", rule: r, code: p, test: TestKeep}`, holes: []string{"want folder#TestName"}},
		"a case that is gone":               {rules: `{at: "2", rule: r, code: p, test: p#TestKeep/case_8}`, holes: []string{"no case"}},
		"a test that skips":                 {rules: `{at: "2", rule: r, code: p, test: p#TestLater}`, holes: []string{"nothing but skip"}},
		"a test that does nothing":          {rules: `{at: "2", rule: r, code: p, test: p#TestEmpty}`, holes: []string{"nothing but skip"}},
		"the same rule twice":               {rules: `{at: "2", ` + kept + `}, {at: "2", ` + kept + `}`, holes: []string{"duplicate rule"}},
		"a section without a rule":          {rules: `{at: "9", ` + kept + `}`, holes: []string{"§2: no rule"}},
		"several holes are all reported":    {rules: `{at: "9", rule: r, code: gone, test: q#TestA}`, holes: []string{"no such file", "no such folder", "§2: no rule"}},
		"a numbered case is of its section": {rules: `{at: "2.7", ` + kept + `}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := parseLedger([]byte("sections: [\"2\"]\nrules: [" + tc.rules + "]\n"))
			require.NoError(t, err)
			holes := l.holes(newSources(repository(t)))
			require.Len(t, holes, len(tc.holes), "%q", holes)
			for i, want := range tc.holes {
				require.Contains(t, holes[i], want)
			}
		})
	}
}

const someContract = `# Contract

## 1. Not asked for
A host MUST do this.

## 2. Asked for
A host MUST say so.
A host may say so.
It says so twice [D].

| n | rule |
|---|---|
| 1 | it MUST be so |
| 2 | it is so |

### 2.1 Rows
| n | rule |
|---|---|
| C1 | so |
| C2 | not so |
`

func TestContract_EveryBindingLineNeedsARule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		says  string // of the rule at 2
		rows  string // of the rule at 2.1
		tags  string
		holes []string
	}{
		"all are answered":       {says: `[MUST say, "| 1 |"]`, rows: `["| C1 |", "| C2 |"]`},
		"a line is not answered": {says: `["| 1 |"]`, rows: `["| C"]`, holes: []string{"line 7 of the contract"}},
		"a row is not answered":  {says: `[MUST]`, rows: `["| C1 |"]`, holes: []string{"line 20 of the contract"}},
		"a phrase is gone":       {says: `[MUST, may say so]`, rows: `["| C"]`, holes: []string{`no line of the section says "may say so"`}},
		"a mark is not answered": {says: `[MUST]`, rows: `["| C"]`, tags: `["[D]"]`, holes: []string{"line 9 of the contract"}},
		"a mark is answered":     {says: `[MUST, twice]`, rows: `["| C"]`, tags: `["[D]"]`},
		"of another section":     {says: `[MUST, "| C1 |"]`, rows: `["| C2 |"]`, holes: []string{"line 19 of the contract", `no line of the section says "| C1 |"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := parseLedger([]byte("sections: [\"2\", \"2.1\"]\nrows: [\"2.1\"]\ntags: " + cmp.Or(tc.tags, "[]") + "\nrules:\n" +
				"- {at: \"2\", rule: a, says: " + tc.says + "}\n- {at: \"2.1\", rule: b, says: " + tc.rows + "}\n"))
			require.NoError(t, err)
			holes := l.unanswered(obligations(someContract, l))
			require.Len(t, holes, len(tc.holes), "%q", holes)
			for i, want := range tc.holes {
				require.Contains(t, holes[i], want)
			}
		})
	}
}

func TestLedger_IsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"a member it does not know": "rules: [{at: \"2\", proof: x}]",
		"no rules":                  "sections: [\"2\"]",
		"no YAML":                   "rules: [",
		"a list of something else":  "rules: [{at: \"2\", code: {a: b}}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseLedger([]byte(doc))
			require.Error(t, err)
		})
	}
}

func TestRun_PrintsEveryRuleAndFailsOnAHole(t *testing.T) {
	t.Parallel()
	root := repository(t)
	ledger, contract := filepath.Join(root, "rules.yaml"), filepath.Join(root, "contract.md")
	require.NoError(t, os.WriteFile(contract, []byte(someContract), 0o600))
	require.NoError(t, os.WriteFile(ledger, []byte("sections: [\"2\"]\nrules:\n- {at: \"2\", rule: keeps, code: p, test: p#TestKeep}\n"), 0o600))

	var out strings.Builder
	require.NoError(t, run(&out, root, ledger, "", false))
	require.Contains(t, out.String(), "SKIPPED")
	require.Contains(t, out.String(), "keeps\n        code: p\n        test: p#TestKeep\n")

	out.Reset()
	require.ErrorContains(t, run(&out, root, ledger, contract, true), "2 holes")
	require.NotContains(t, out.String(), "SKIPPED")
	require.Contains(t, out.String(), "HOLE §2 line 7")
	require.Contains(t, out.String(), "1 rules, 0 of them not this host's, 2 holes")
}

// The ledgers have no holes. The comparison with the contract needs its text.
func TestLedgers_HaveNoHole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"envelopes", "host"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract := filepath.Join(os.Getenv("WAYBILL_SHARED"), "contract", name+".md")
			if _, err := os.Stat(contract); err != nil {
				contract = ""
			}
			var out strings.Builder
			require.NoError(t, run(&out, "../..", "../../docs/rules/"+name+".yaml", contract, true), out.String())
		})
	}
}
