package lint_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/dispatcher/lint"
	"waybill.dev/waybill/services/dispatcher/node"
)

var limits = node.Limits{MaxNodeExecutions: 1000, MaxRunDuration: 24 * time.Hour}

// The protocol's own definitions have no problems, on hosts with and without what they need.
func TestCheck_AcceptsTheFixturesOfTheProtocol(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schematest.Dir(t), "fixtures", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for name, h := range map[string]lint.Host{
		"no host":      {Types: node.Builtin(), Limits: limits},
		"a plain host": {Types: node.Builtin(), Limits: limits, Complete: true, Providers: []string{"sample"}, Kinds: []string{}},
		"a test host":  {Types: node.Builtin().Conformance(nil), Limits: limits, Complete: true, Providers: []string{"sample", "mock"}, Kinds: []string{}},
	} {
		for _, f := range files {
			doc, err := os.ReadFile(f)
			require.NoError(t, err)
			if problems := h.Check(doc).Problems; h.Complete && filepath.Base(f) == "conformance-agent-channel-dispatch.json" {
				require.Len(t, problems, 1, "a host without deployments of agents rejects a channel")
				require.Equal(t, "/nodes/0/agent/channel", problems[0].Path)
			} else {
				require.Empty(t, problems, "%s: %s", name, f)
			}
		}
	}
}

// The examples have neither problems nor warnings.
func TestCheck_FindsNothingInTheExamples(t *testing.T) {
	t.Parallel()
	desk := pack.Source{Folder: "desk", FS: os.DirFS(filepath.Join("..", "..", "..", "examples", "packs", "desk"))}
	packs, _, err := pack.Load([]pack.Source{desk}, pack.Host{Any: true})
	require.NoError(t, err)
	h := lint.Host{Types: node.Builtin().And(node.PeerTypes()...).With(packs), Limits: limits}
	for _, pattern := range []string{"*/workflow.json", "small/*.json", "models/workflows/*.json"} {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, f := range files {
			doc, err := os.ReadFile(f)
			require.NoError(t, err)
			r := h.Check(doc)
			require.Empty(t, r.Problems, f)
			require.Empty(t, r.Warnings, f)
		}
	}
}
