package scaffold

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/lint"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checked asserts that a host with one kind accepts a definition without a warning.
func checked(t *testing.T, path string, kinds ...string) {
	t.Helper()
	doc, err := os.ReadFile(path)
	require.NoError(t, err)
	h := lint.Host{
		Types: node.Builtin(), Limits: node.Limits{MaxNodeExecutions: 100, MaxRunDuration: 1 << 50},
		Complete: true, Providers: []string{"sample"}, Kinds: append(kinds, "none"),
	}
	r := h.Check(doc)
	require.Empty(t, r.Problems)
	require.Empty(t, r.Warnings)
}

func TestInit_WritesFilesWithoutFindings(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	_, err := clitest.Run(t, Init(), "", "init", dir, "--schemas", "https://host.example/base/")
	require.NoError(t, err)
	checked(t, filepath.Join(dir, "workflows", "summarise.json"), "vendor.example.summary")
	kind, err := os.ReadFile(filepath.Join(dir, "kinds", "vendor.example.summary.schema.json"))
	require.NoError(t, err)
	require.Empty(t, schema.Lint(kind, schema.LevelStrict))
	require.Empty(t, schema.UnknownKeywords(kind))
	settings, err := os.ReadFile(filepath.Join(dir, ".vscode", "settings.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(settings))
	require.Contains(t, string(settings), `"https://host.example/base/schemas/workflow.schema.json"`)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "workflows", "summarise.json"), []byte("mine"), 0o600))
	_, err = clitest.Run(t, Init(), "", "init", dir)
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(dir, "workflows", "summarise.json"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(own), "existing files stay")
}

func TestWorkflowNew_WritesAFileWithoutFindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := clitest.Run(t, Workflow(), "", "new", "my-flow", "--dir", dir)
	require.NoError(t, err)
	file := filepath.Join(dir, "my-flow.json")
	require.Equal(t, file+"\n", out)
	checked(t, file)
	doc, err := os.ReadFile(file)
	require.NoError(t, err)
	def, problems := workflow.Parse(doc)
	require.Empty(t, problems)
	require.Len(t, def.Edges, 1, "an example of an edge")
	require.NotEmpty(t, def.Nodes[0].Inputs, "and of an input")
	_, err = clitest.Run(t, Workflow(), "", "new", "other", "--dir", dir, "--kind", "vendor.acme.ticket")
	require.NoError(t, err)
	checked(t, filepath.Join(dir, "other.json"), "vendor.acme.ticket")
	_, err = clitest.Run(t, Workflow(), "", "new", "my-flow", "--dir", dir)
	require.Equal(t, exit.Usage, exit.Status(err), "an existing file is not overwritten")
}

func TestKindNew_WritesASchemaWithoutFindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := clitest.Run(t, Kind(), "", "new", "vendor.acme.ticket", "--dir", dir)
	require.NoError(t, err)
	doc, err := os.ReadFile(filepath.Join(dir, "vendor.acme.ticket.schema.json"))
	require.NoError(t, err)
	require.Empty(t, schema.Lint(doc, schema.LevelStrict))
	require.Empty(t, schema.UnknownKeywords(doc))
}

func TestCommands_RejectInvalidNames(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		command func() *cobra.Command
		args    []string
	}{
		"id":      {Workflow, []string{"new", "My Flow"}},
		"kind":    {Kind, []string{"new", "ticket"}},
		"answer":  {Workflow, []string{"new", "x", "--kind", `vendor.a"`}},
		"schemas": {Init, []string{"init", "--schemas", `http://h/"`}},
	} {
		_, err := clitest.Run(t, tc.command(), "", tc.args...)
		require.Equal(t, exit.Usage, exit.Status(err), "%s: %v", name, err)
	}
}
