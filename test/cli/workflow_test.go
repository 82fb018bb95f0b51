package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// A workflow written by `waybill workflow new` lints clean, is registered, and runs at the first try.
func TestWorkflow_NewRunsAtTheFirstTry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := harness.Start(t)
	u := at(t, h.HTTP, "dev-key")
	u.ok("workflow", "new", "first", "--dir", dir)
	file := filepath.Join(dir, "first.json")
	require.Empty(t, u.ok("workflow", "lint", file).out)
	require.Empty(t, u.ok("workflow", "lint", "--url", h.HTTP, file).out)
	u.ok("workflow", "register", file)
	r := u.ok("run", "start", "first", "--set", "text=Hello", "--wait", "-o", "json")
	require.Contains(t, r.out, `"summary"`, "the edge passes the answer on: "+r.out)
}

func TestWorkflow_VersionsAreComparedAndDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := harness.Start(t)
	u := at(t, h.HTTP, "dev-key")
	u.ok("workflow", "new", "flow", "--dir", dir)
	file := filepath.Join(dir, "flow.json")
	u.ok("workflow", "register", file)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, string(first), u.ok("workflow", "get", "flow").out)
	require.Empty(t, u.ok("workflow", "diff", "flow", file).out)

	second := strings.NewReplacer(`"1.0.0"`, `"1.1.0"`, `"maxTokens": 400`, `"maxTokens": 500`).Replace(string(first))
	require.NoError(t, os.WriteFile(file, []byte(second), 0o600))
	r := u.run("workflow", "diff", "flow", file)
	require.Equal(t, 1, r.status)
	require.Contains(t, r.out, "~ /nodes/ask/config/maxTokens: 400 -> 500\n")
	require.Contains(t, r.out, `~ /version: "1.0.0" -> "1.1.0"`)
	u.ok("workflow", "register", file)
	require.Contains(t, u.run("workflow", "diff", "flow", "--from", "1.0.0").out, "maxTokens")
	require.Equal(t, 2, u.run("workflow", "diff", "flow").status)

	var versions struct{ Versions []struct{ Version string } }
	require.NoError(t, json.Unmarshal([]byte(u.ok("workflow", "versions", "flow", "-o", "json").out), &versions))
	require.Len(t, versions.Versions, 2)
	require.Equal(t, "flow 1.0.0 deleted\n", u.ok("workflow", "delete", "flow", "--version", "1.0.0").out)
	u.ok("workflow", "delete", "flow")
	require.Equal(t, 5, u.run("workflow", "get", "flow").status)
}

// The formats for code hosts.
func TestWorkflow_LintReportsToCodeHosts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flow.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"flow","name":"flow","version":"1",
 "nodes":[{"id":"a","typeId":"core.ai.callPrompt","config":{"promt":"x, 100%"}}]}`), 0o600))
	u := offline(t)
	r := u.run("workflow", "lint", "-o", "github", file)
	require.Equal(t, 1, r.status)
	require.Contains(t, r.out, "::error file="+file+",line=2,col=61,title=additionalProperties::/nodes/0/config/promt: unknown member; did you mean prompt?")
	require.Contains(t, r.err, "1 finding in 1 file")

	r = u.run("workflow", "lint", "-o", "sarif", file)
	require.Equal(t, 1, r.status)
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID, Level string
				RuleIndex     int
				Locations     []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &log))
	require.Equal(t, "2.1.0", log.Version)
	require.Len(t, log.Runs[0].Results, 1)
	for _, result := range log.Runs[0].Results {
		require.Equal(t, result.RuleID, log.Runs[0].Tool.Driver.Rules[result.RuleIndex].ID)
		require.Equal(t, "file://"+filepath.ToSlash(file), result.Locations[0].PhysicalLocation.ArtifactLocation.URI, "outside of a repository")
		require.Positive(t, result.Locations[0].PhysicalLocation.Region.StartLine)
	}
}

// All problems of a definition are printed, each with its place and a remedy.
func TestWorkflow_RegisterPrintsAllProblems(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flow.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"flow","name":"flow","version":"1",
 "nodes":[{"id":"a","typeId":"core.ai.callPrompt","config":{"prompt":"x","promt":"y","provider":"mock"}}],
 "edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"zz"}]}`), 0o600))
	u := at(t, shared.Host(t).HTTP, testKey)
	r := u.run("workflow", "register", file)
	require.NotZero(t, r.status)
	require.Contains(t, r.err, file+":2:74: /nodes/0/config/promt: additionalProperties: unknown member; prompt is set, too: remove one of the two;")
	require.Contains(t, r.err, file+":3:40: /edges/0/targetNodeId: reference: no node has this id; use one of nodes[].id")
	require.Contains(t, r.err, "the definition has 2 problem(s)")
	r = u.typing(`{"id":"flow","name":"flow","version":"1","nodes":[{"id":"a","typeId":"core.nop"}]}`).run("workflow", "register", "-")
	require.Contains(t, r.err, "-:1:")
	require.Contains(t, r.err, "/nodes/0/typeId: node-type: ")
}

// The list says where a workflow comes from and what it hides; what is shared cannot be deleted.
func TestWorkflow_ListWarnsAboutHiddenFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "flow.json")
	doc := func(version string) []byte {
		return []byte(`{"id":"flow","name":"Flow","version":"` + version + `","nodes":[{"id":"a","typeId":"core.noop"}]}`)
	}
	require.NoError(t, os.WriteFile(file, doc("1"), 0o600))
	h := harness.Start(t, "--workflows", dir)
	u := at(t, h.HTTP, "dev-key")
	r := u.ok("workflow", "list")
	require.Regexp(t, `(?m)^flow +1 +flow\.json +Flow`, r.out)
	require.Empty(t, r.err)

	r = u.run("workflow", "delete", "flow")
	require.NotZero(t, r.status)
	require.Contains(t, r.err, "workflow flow is shared by all tenants")
	require.Contains(t, r.err, "hint: The operator removes its file, flow.json, from the folder of --workflows.")
	r = u.run("workflow", "register", dir)
	require.Equal(t, 2, r.status)
	require.Contains(t, r.err, dir+" is a folder; register its files one by one, or start the host with --workflows "+dir)

	own := filepath.Join(t.TempDir(), "own.json")
	require.NoError(t, os.WriteFile(own, doc("2"), 0o600))
	require.Contains(t, u.ok("workflow", "register", own).err, "warning: /id: hides: your tenant's own workflow hides version 1 of the file flow.json")
	r = u.ok("workflow", "list")
	require.Regexp(t, `(?m)^flow +2 +tenant +Flow`, r.out)
	require.Contains(t, r.err, "warning: flow: your tenant's own workflow hides version 1 of the file flow.json")
}

// Settings files are checked without a host, and by a host with the same words.
func TestSettings_LintListsAllMistakes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rate-limits.json")
	require.NoError(t, os.WriteFile(file, []byte("{\n \"limts\": [],\n \"limits\": [\"key=1/s\", \"key=0/s\"],\n \"tenants\": {\"acme\": [\"x\"]}\n}"), 0o600))
	r := offline(t).run("settings", "lint", file)
	require.Equal(t, 1, r.status)
	for _, want := range []string{
		file + ":2:2: /limts: settings: unknown member; allowed here: $schema, limits, tenants; limits is set, too: remove one of the two",
		file + ":3:24: /limits/1: settings: \"key=0/s\": ",
		file + ":4:23: /tenants/acme/0: settings: \"x\": ",
	} {
		require.Contains(t, r.out, want)
	}
	require.Contains(t, r.err, "3 findings in 1 file")

	host := offline(t).run("dev", "--data-dir", t.TempDir(), "--rate-limits", file)
	require.Equal(t, 2, host.status, host.err)
	for _, want := range []string{"line 2, at \"/limts\"", "line 3, at \"/limits/1\"", "line 4, at \"/tenants/acme/0\""} {
		require.Contains(t, host.err, want)
	}
}
