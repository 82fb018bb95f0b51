package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// listed is a row of the list of workflows.
type listed struct {
	WorkflowID, Name, Version, Origin, File string
	Warnings                                []string
}

// workflowRow returns a row of the list; nil if the workflow is not listed.
func workflowRow(t *testing.T, c *harness.Client, id string) *listed {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/workflows?limit=200", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var page struct{ Workflows []listed }
	require.NoError(t, json.Unmarshal(a.Body, &page))
	for _, w := range page.Workflows {
		if w.WorkflowID == id {
			return &w
		}
	}
	return nil
}

func noop(id, version, name string) string {
	return `{"id":"` + id + `","name":"` + name + `","version":"` + version + `","nodes":[{"id":"a","typeId":"core.noop"}]}`
}

// A tenant's own workflow hides that of a file: the list, the registration and the log say so.
func TestWorkflowFiles_HiddenByATenant(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "triage.json")
	save(t, file, noop("triage", "1", "the file's"))
	h := harness.Start(t, "--workflows", dir, "--api-key", "a=acme:*", "--api-key", "b=beta:*")
	acme, beta := h.Client("a"), h.Client("b")
	require.Equal(t, &listed{WorkflowID: "triage", Name: "the file's", Version: "1", Origin: "shared", File: "triage.json", Warnings: []string{}},
		workflowRow(t, acme, "triage"))

	a, err := acme.Do(t.Context(), http.MethodPost, "/v1/workflows", noop("triage", "9", "acme's"))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	require.Contains(t, string(a.Body), "hides version 1 of the file triage.json")
	row := workflowRow(t, acme, "triage")
	require.Equal(t, "tenant", row.Origin)
	require.Len(t, row.Warnings, 1)
	require.Contains(t, row.Warnings[0], "hides version 1 of the file triage.json")
	require.Empty(t, workflowRow(t, beta, "triage").Warnings)

	save(t, file, noop("triage", "2", "the file's"))
	eventually(t, "the edit that acme does not see is logged", func() bool {
		return strings.Contains(h.Log(), "tenants do not see the workflow of this file") && strings.Contains(h.Log(), "acme")
	})
	h.AwaitLog(file)
	eventually(t, "the list has the new version", func() bool {
		return strings.Contains(workflowRow(t, acme, "triage").Warnings[0], "version 2")
	})

	a, err = beta.Do(t.Context(), http.MethodDelete, "/v1/workflows/triage", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, a.Status)
	require.Contains(t, string(a.Body), "The operator removes its file, triage.json")
	require.NotContains(t, string(a.Body), dir)
}

// A workflow whose file is removed, or defines another one, is removed, also while the host is stopped.
func TestWorkflowFiles_Removed(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, id := range []string{"one", "two", "three", "kept"} {
		save(t, at(id+".json"), noop(id, "1", id))
	}
	h := harness.Start(t, "--workflows", dir)
	c := h.Client("dev-key")
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", noop("own", "1", "own"))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)

	require.NoError(t, os.Remove(at("one.json")))
	eventually(t, "it is removed", func() bool { return workflowRow(t, c, "one") == nil })
	h.AwaitLog("workflow removed, because its file is gone", at("one.json"))
	save(t, at("two.json"), noop("other", "1", "other"))
	eventually(t, "its file defines another one", func() bool {
		return workflowRow(t, c, "two") == nil && workflowRow(t, c, "other") != nil
	})
	save(t, at("one.json"), noop("one", "1", "one again"))
	eventually(t, "it is back", func() bool { return workflowRow(t, c, "one") != nil })

	h.Stop()
	require.NoError(t, os.Remove(at("three.json")))
	h.Restart()
	c = h.Client("dev-key")
	require.Nil(t, workflowRow(t, c, "three"))
	for _, id := range []string{"one", "other", "kept", "own"} {
		require.NotNil(t, workflowRow(t, c, id), id)
	}

	// A folder without any file may not be mounted yet.
	h.Stop()
	files, err := filepath.Glob(at("*.json"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	h.Restart()
	require.NotNil(t, workflowRow(t, h.Client("dev-key"), "kept"))
	h.AwaitLog("missing from a folder without files")
}

// A file that gets another name keeps its workflow, without a moment in which the host does not have it.
func TestWorkflowFiles_Renamed(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	save(t, filepath.Join(dir, "m.json"), noop("mine", "1", "n"))
	save(t, filepath.Join(dir, "gone.json"), noop("gone", "1", "n"))
	save(t, filepath.Join(dir, "other.json"), noop("other", "1", "n"))
	h := harness.Start(t, "--workflows", dir)
	c := h.Client("dev-key")
	rename := func(from, to string) { // after and before by name
		require.NoError(t, os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)))
		eventually(t, to+" is read", func() bool {
			row := workflowRow(t, c, "mine")
			return row == nil || row.File == to
		})
		require.NotNil(t, workflowRow(t, c, "mine"), "the workflow is always there")
	}
	rename("m.json", "z.json")
	rename("z.json", "a.json")
	require.NoError(t, os.Remove(filepath.Join(dir, "gone.json")))
	eventually(t, "a file that is gone for good takes its workflow along", func() bool { return workflowRow(t, c, "gone") == nil })
	require.Equal(t, "1", workflowRow(t, c, "mine").Version)
	require.NotContains(t, h.Log(), "workflow_id=mine")
	require.NotContains(t, h.Log(), "have the same id")
	start(t, c, `{"workflowId":"mine"}`)
}

// Of two files with the same id and version, the first by name is used, and log and list name both.
func TestWorkflowFiles_WithTheSameID(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	save(t, first, noop("flow", "1", "of a"))
	save(t, second, noop("flow", "1", "of b"))
	h := harness.Start(t, "--workflows", dir)
	c := h.Client("dev-key")
	row := workflowRow(t, c, "flow")
	require.Equal(t, "of a", row.Name)
	require.Equal(t, []string{"several files define it: a.json (version 1), b.json (version 1, not used); delete all but one"}, row.Warnings)
	h.AwaitLog(second, first+" has the same id and version")

	save(t, second, noop("flow", "2", "of b"))
	eventually(t, "another version is used", func() bool { return workflowRow(t, c, "flow").Name == "of b" })
	h.AwaitLog("several files define the same workflow")
	save(t, second, noop("flow", "1", "of b, again"))
	eventually(t, "the first one is used again", func() bool { return workflowRow(t, c, "flow").Name == "of a" })
	save(t, first, noop("flow", "1", "of a, again"))
	eventually(t, "it is edited", func() bool { return workflowRow(t, c, "flow").Name == "of a, again" })

	require.NoError(t, os.Remove(first))
	eventually(t, "the other file is used, and it is the only one", func() bool {
		row := workflowRow(t, c, "flow")
		return row.Name == "of b, again" && len(row.Warnings) == 0
	})

	earlier := filepath.Join(dir, "0.json")
	save(t, earlier, noop("flow", "1", "of 0"))
	eventually(t, "an earlier file is used", func() bool { return workflowRow(t, c, "flow").Name == "of 0" })
	h.AwaitLog("two files have the same id and version")
	require.NoError(t, os.Remove(earlier))
	eventually(t, "the other file is used again", func() bool { return workflowRow(t, c, "flow").Name == "of b, again" })

	// A file that the host refuses takes no id from another one.
	save(t, first, `{"id":"flow","name":"bad","version":"1","nodes":[{"id":"a","typeId":"core.none"}]}`)
	h.AwaitLog("unknown node type")
	save(t, second, noop("flow", "1", "of b, edited"))
	eventually(t, "the edit is used", func() bool { return workflowRow(t, c, "flow").Name == "of b, edited" })
}
