package pack_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
)

// A manifest is judged as the published schema judges it. Two things apart: agents, into which this host does not look, and the
// object form of a peer dependency, which RFC 0055 has and the published schema
// has not (OpenWOP envelope contract §24, C15).
func TestManifest_EqualsThePublishedSchema(t *testing.T) {
	t.Parallel()
	theirs, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", "node-pack-manifest.schema.json"))
	require.NoError(t, err)
	own, err := os.ReadFile("manifest.schema.json")
	require.NoError(t, err)
	published, ours := schematest.Value(t, theirs), schematest.Value(t, own)
	properties := func(doc any) map[string]any { return doc.(map[string]any)["properties"].(map[string]any) }
	properties(published)["agents"] = properties(ours)["agents"]
	judge := compiled(t, published)
	mine := compiled(t, ours)

	node := map[string]any{"typeId": "vendor.acme.write", "version": "1.0.0", "category": "data", "role": "pure"}
	schematest.Twins{
		Schemas: []any{published, ours},
		Words:   []string{"vendor.acme.notes", "1.2.0", "https://acme.example/notes", "acme", "vision-input"},
		Adapt: func(sample any) {
			m := sample.(map[string]any)
			if peers, ok := m["peerDependencies"].(map[string]any); ok {
				delete(peers, "aiProviders")
			}
			if m["nodes"] == nil && m["agents"] == nil {
				m["nodes"] = []any{node}
			}
			if m["runtime"] == nil {
				m["runtime"] = map[string]any{"language": "go", "entry": "x"}
			}
			if empty(m["nodes"]) && empty(m["agents"]) {
				m["nodes"] = []any{node}
			}
		},
	}.Compare(t, func(what string, doc []byte) bool {
		want, got := judge.Validate(doc), mine.Validate(doc)
		var peers struct {
			Dependencies struct {
				Providers map[string]any `json:"aiProviders"`
			} `json:"peerDependencies"`
		}
		if _ = json.Unmarshal(doc, &peers); peers.Dependencies.Providers != nil {
			return len(want) == 0
		}
		if (len(want) == 0) != (len(got) == 0) {
			require.Fail(t, "the published manifest and ours disagree", "%s\n%.800s\npublished: %v\nours: %v", what, doc, want, got)
		}
		return len(want) == 0
	})
}

func empty(list any) bool {
	l, _ := list.([]any)
	return len(l) == 0
}

func compiled(t *testing.T, doc any) *schema.Schema {
	t.Helper()
	s, err := schema.Compile("manifest", schematest.Document(t, doc))
	require.NoError(t, err)
	return s
}
