package docs

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// shared is the host for pages that start none. It already has a run.
var shared = harness.Shared{Setup: func(h *harness.Host) error {
	c, ctx := h.Client("dev-key"), context.Background()
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"I was charged twice."}}`)
	if err != nil {
		return err
	}
	var run struct{ RunID string }
	if err := a.JSON(&run); err != nil {
		return err
	}
	_, err = c.Finish(ctx, run.RunID)
	return err
}}

func TestMain(m *testing.M) {
	m.Run()
	shared.Close()
}

// mostNotRun limits the number of shell blocks that are not executed. Each has a reason, and a page
// must not avoid the test with many of them.
const mostNotRun = 21

// tools skips the test if a command used by the blocks is missing.
func tools(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	for _, name := range []string{"bash", "curl", "jq", "make", "openssl"} {
		if _, err := exec.LookPath(name); err != nil {
			require.NotEqual(t, "required", os.Getenv("WAYBILL_DOCS"), "%s is not there", name)
			t.Skipf("SKIPPED, %s is not installed: install it to run the blocks of the pages", name)
		}
	}
}

// Every shell block works when copied.
func TestShell_EachBlockIsExecuted(t *testing.T) {
	t.Parallel()
	tools(t)
	ran := 0
	for _, p := range pages(t) {
		blocks := p.of("sh", "console")
		blocks = slices.DeleteFunc(blocks, func(b block) bool { return b.notRun != "" })
		if len(blocks) == 0 {
			continue
		}
		ran += len(blocks)
		t.Run(p.path, func(t *testing.T) {
			if !slices.ContainsFunc(blocks, func(b block) bool { return strings.Contains(b.text, "run delete") }) {
				t.Parallel() // pages that erase runs come first: others read the newest run
			}
			require.NoError(t, newSession(t, p, blocks).run(t))
		})
	}
	require.Positive(t, ran)
}

// The session detects pages that are wrong; otherwise the tests would prove nothing.
func TestSession_FindsErrors(t *testing.T) {
	t.Parallel()
	tools(t)
	const get = "curl -s -H 'Authorization: Bearer dev-key' localhost:8080/v1/runs/"
	for name, tc := range map[string]struct{ text, wrong string }{
		"what a block sets is there for the next": {"```sh\nA=1\n```\n```console\n$ echo $A\n1\n```\n", ""},
		"a status that the page shows":            {"```console\n$ false\n$ echo $?\n1\n```\n", ""},
		"a command over two lines":                {"```console\n$ echo a \\\n    b\na b\n```\n", ""},
		"a refusal that the page shows":           {"```console\n$ " + get + "none\n{\"error\":\"run_not_found\",…}\n```\n", ""},
		"a block that fails":                      {"```sh\ntrue\nfalse\necho never\n```\n", "p.md:1: the block failed"},
		"a block whose pipe fails":                {"```sh\nfalse | cat\n```\n", "p.md:1: the block failed"},
		"an unset variable":                       {"```sh\necho $RUN\n```\n", "RUN: unbound variable"},
		"a refusal":                               {"```sh\n" + get + "none\n```\n", "run_not_found"},
		"another output":                          {"```console\n$ echo b\na\n```\n", "the command prints\nb"},
		"an output that the page leaves out":      {"```console\n$ echo b\n```\n", "the command prints\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := parse(t, "p.md", tc.text)
			err := newSession(t, p, p.blocks).run(t)
			if tc.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.wrong)
		})
	}
}

// Blocks that are not executed are listed with their reasons, and are few.
func TestShell_FewBlocksAreNotExecuted(t *testing.T) {
	t.Parallel()
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.notRun == "" {
				continue
			}
			require.Contains(t, []string{"sh", "console"}, b.lang, "%s:%d: only shell blocks are run", p.path, b.line)
			t.Logf("%s:%d is not run: %s", p.path, b.line, b.notRun)
			n++
		}
	}
	require.LessOrEqual(t, n, mostNotRun)
}

// A block in an unknown language would not be checked.
func TestBlocks_AreOfALanguageThatIsChecked(t *testing.T) {
	t.Parallel()
	known := []string{"", "sh", "console", "json", "yaml", "go", "sql", "text", "mermaid"}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			require.Contains(t, known, b.lang, "%s:%d", p.path, b.line)
			if b.lang == "mermaid" {
				require.Regexp(t, `^(flowchart|sequenceDiagram|stateDiagram-v2)\b`, b.text, "%s:%d", p.path, b.line)
			}
		}
	}
}

func TestPattern_MatchesVaryingValues(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"ready (79 ms)\n":                 "ready (136 ms)\n",
		"{\"runId\":\"run_0123456\",…}\n": "{\"runId\":\"run_9876543\",\"status\":\"pending\"}\n",
		"a\n…\nz\n":                       "a\nb\nc\nz\n",
		"at 2026-01-01T00:00:00Z\n":       "at 2027-02-03T04:05:06.789Z\n",
		"ev_run_0123456_0\n":              "ev_run_0123456_0\n",
		"":                                "",
	} {
		require.Regexp(t, pattern(want), got)
	}
	for want, got := range map[string]string{"a\n": "a\nb\n", "a.c\n": "abc\n", "{\"status\":\"failed\"…\n": "{\"status\":\"completed\"}\n"} {
		require.NotRegexp(t, pattern(want), got)
	}
}
