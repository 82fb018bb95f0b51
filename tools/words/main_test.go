package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const diff = `diff --git a/a.go b/a.go
--- a/a.go
+++ b/a.go
@@ -3,0 +4,3 @@ func f() {
+	// The caller is told what comes of it.
+	nobody := 1
+	// Beside the log, a lease.
-	// whoever calls
@@ -20 +23 @@
+	return errors.New("Anew")
`

func TestFind_ReportsAddedProseWithItsLine(t *testing.T) {
	t.Parallel()
	var got []string
	for _, s := range find(parse(list), diff) {
		got = append(got, s.String())
	}
	assert.Equal(t, []string{
		"a.go:4: \"told\": reported, returned, logged\n\t// The caller is told what comes of it.",
		"a.go:4: \"comes of\": name the result\n\t// The caller is told what comes of it.",
		"a.go:6: \"beside\": next to\n\t// Beside the log, a lease.",
		"a.go:23: \"anew\": again\n\treturn errors.New(\"Anew\")",
	}, got)
}

func TestSlips_CountTheWordsOfASentence(t *testing.T) {
	t.Parallel()
	long := "// " + strings.Repeat("word ", longest+1)
	require.Equal(t, []string{"a sentence of 31 words: split it"}, slipsOf(nil, strings.TrimSpace(long)))
	require.Empty(t, slipsOf(nil, "// "+strings.Repeat("word ", longest)+". And a second sentence."))
	require.Empty(t, slipsOf(nil, "| "+strings.Repeat("word ", longest+1)+"|"))
	require.Empty(t, slipsOf(nil, `f("`+strings.Repeat("word ", longest+1)+`")`))
}

func TestParse_ReadsEveryEntry(t *testing.T) {
	t.Parallel()
	for _, w := range parse(list) {
		require.NotEmpty(t, w.remedy, w.text)
		require.True(t, w.pattern.MatchString("so "+w.text+"."), w.text)
		require.False(t, w.pattern.MatchString("x"+w.text+"x"), w.text)
	}
	require.Greater(t, len(parse(list)), 20)
}

// A change since the branch left main is found, and slips do not fail the command.
func TestRun_ComparesWithMain(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	commit := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "page.md"), []byte(text), 0o600))
		for _, args := range [][]string{{"add", "."}, {"-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"}} {
			out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
	}
	require.NoError(t, exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "main").Run())
	commit("Nobody knew the old line.\n")
	require.NoError(t, exec.CommandContext(t.Context(), "git", "checkout", "-qb", "change").Run())
	commit("Nobody knew the old line.\nSomebody wrote a new one.\n")
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, nil))
	require.Contains(t, out.String(), "page.md:2: \"somebody\"")
	require.Contains(t, out.String(), "1 slips in the lines changed since ")
	require.Error(t, run(t.Context(), &out, []string{"no-such-commit"}))
}
