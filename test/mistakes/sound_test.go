package mistakes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// sound is a definition without a mistake, and the inputs with which its runs complete.
type sound struct {
	Inputs     json.RawMessage `json:"inputs"`
	Definition json.RawMessage `json:"definition"`
}

// loadSound reads the definitions of testdata/sound by name.
func loadSound(t *testing.T) map[string]sound {
	t.Helper()
	files, err := filepath.Glob("testdata/sound/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]sound{}
	for _, f := range files {
		doc, err := os.ReadFile(f)
		require.NoError(t, err)
		var s sound
		require.NoError(t, json.Unmarshal(doc, &s), f)
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = s
	}
	return all
}

// A definition that works has no findings: its runs complete.
func TestMistakes_AreNotFoundInDefinitionsThatRun(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	dir := t.TempDir()
	all := loadSound(t)
	for name, s := range all {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), s.Definition, 0o600))
	}
	out, status := harness.Command(t, "workflow", "lint", dir)
	require.Zero(t, status, out)
	require.Empty(t, out)
	h := harness.Start(t)
	c := h.Client("dev-key")
	for name, s := range all {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", string(s.Definition))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", name, a.Body)
		var registered struct {
			WorkflowID string
			Warnings   []finding
		}
		require.NoError(t, json.Unmarshal(a.Body, &registered))
		require.Empty(t, registered.Warnings, name)
		a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflowId":%q,"inputs":%s}`, registered.WorkflowID, s.Inputs))
		require.NoError(t, err, name)
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", name, a.Body)
		var run struct{ RunID string }
		require.NoError(t, json.Unmarshal(a.Body, &run))
		events, err := c.Finish(t.Context(), run.RunID)
		require.NoError(t, err, name)
		require.Equal(t, "run.completed", events[len(events)-1].Type, name)
	}
}
