package editorschema_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/editorschema"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/schemas"
)

// The generated files are those of this code; `make gen` writes them.
func TestSchemas_AreUpToDate(t *testing.T) {
	t.Parallel()
	all, err := editorschema.All()
	require.NoError(t, err)
	found := 0
	err = fs.WalkDir(schemas.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		doc, err := schemas.FS.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(all[name]), string(doc), "%s: run make gen", name)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, all, found)
	for name, doc := range all {
		_, err := schema.Compile(name, doc)
		require.NoError(t, err, name)
		var o struct {
			ID string `json:"$id"`
		}
		require.NoError(t, json.Unmarshal(doc, &o))
		require.Equal(t, editorschema.Base+name, o.ID)
	}
}

// Editors find the misspelled members that the host finds, and accept what it accepts.
func TestWorkflowSchema_AgreesWithTheHost(t *testing.T) {
	t.Parallel()
	all, err := editorschema.All()
	require.NoError(t, err)
	s, err := schema.Compile("workflow", all["workflow.schema.json"])
	require.NoError(t, err)
	top := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(top, "test", "mistakes", "testdata", "mistakes", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	unknown := 0
	for _, f := range files {
		doc, err := os.ReadFile(f)
		require.NoError(t, err)
		var m struct {
			Expect struct {
				Path, Rule string
				Warning    bool
			}
			Definition json.RawMessage
		}
		require.NoError(t, json.Unmarshal(doc, &m))
		open := m.Expect.Warning || strings.HasPrefix(m.Expect.Path, "/settings") || strings.HasPrefix(m.Expect.Path, "/metadata") ||
			strings.HasSuffix(m.Expect.Path, "/settings/timeout") || strings.HasSuffix(m.Expect.Path, "/settings/priority")
		if m.Expect.Rule == "additionalProperties" && !open {
			unknown++
			require.NotEmpty(t, s.Validate(m.Definition), f)
		}
	}
	require.Positive(t, unknown)
	for _, pattern := range []string{"*/workflow.json", "small/*.json", "models/workflows/*.json"} {
		files, err := filepath.Glob(filepath.Join(top, "examples", pattern))
		require.NoError(t, err)
		for _, f := range files {
			doc, err := os.ReadFile(f)
			require.NoError(t, err)
			require.Empty(t, s.Validate(doc), f)
		}
	}
}
