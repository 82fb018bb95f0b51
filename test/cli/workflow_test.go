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
	u.ok("run", "start", "first", "--set", "text=Hello", "--wait")
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
		require.Equal(t, file, result.Locations[0].PhysicalLocation.ArtifactLocation.URI)
		require.Positive(t, result.Locations[0].PhysicalLocation.Region.StartLine)
	}
}
