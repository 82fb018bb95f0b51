// Package mistakes holds definitions with one mistake each, and tests that every entrance finds it: the
// command line, registration over REST and gRPC, the check on a host, and folders.
package mistakes

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert" // a test lists all mistakes that are not found
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/test/harness"
)

// finding is a problem or a warning, as all entrances report it.
type finding struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Warning bool   `json:"warning"`
}

// mistake is a file of testdata.
type mistake struct {
	Expect struct {
		Path string `json:"path"`
		Rule string `json:"rule"`
		// Says is a part of the message: what is allowed, or the remedy.
		Says    string `json:"says"`
		Warning bool   `json:"warning"`
		// Host means that only a host can find it.
		Host bool `json:"host"`
		// Peer means that only a host with an MCP server or an A2A agent has the node type.
		Peer bool `json:"peer"`
	} `json:"expect"`
	Definition json.RawMessage `json:"definition"`
}

func (m mistake) foundIn(all []finding) bool {
	return slices.ContainsFunc(all, func(f finding) bool {
		return f.Path == m.Expect.Path && f.Rule == m.Expect.Rule && f.Warning == m.Expect.Warning && strings.Contains(f.Message, m.Expect.Says)
	})
}

// load reads the mistakes by name, and writes each definition as a file of its own.
func load(t *testing.T) (all map[string]mistake, dir string) {
	t.Helper()
	files, err := filepath.Glob("testdata/mistakes/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 300)
	all, dir = map[string]mistake{}, t.TempDir()
	for _, f := range files {
		doc, err := os.ReadFile(f)
		require.NoError(t, err)
		var m mistake
		require.NoError(t, json.Unmarshal(doc, &m), f)
		require.NotEmpty(t, m.Expect.Says, f)
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = m
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(f)), m.Definition, 0o600))
	}
	return all, dir
}

// lint runs `waybill workflow lint` over a folder, and returns the findings by file.
func lint(t *testing.T, dir string, args ...string) map[string][]finding {
	t.Helper()
	out, status := harness.Command(t, append([]string{"workflow", "lint", "-o", "json", dir}, args...)...)
	require.Equal(t, 1, status, out)
	out = out[:strings.LastIndexByte(out, ']')+1] // the error follows
	var list []struct {
		File         string `json:"file"`
		Line, Column int
		finding
	}
	require.NoError(t, json.Unmarshal([]byte(out), &list), out)
	found := map[string][]finding{}
	for _, f := range list {
		require.Positive(t, f.Line, f.File)
		require.Positive(t, f.Column, f.File)
		name := strings.TrimSuffix(filepath.Base(f.File), ".json")
		found[name] = append(found[name], f.finding)
	}
	return found
}

func TestMistakes_AreFoundWithoutAHost(t *testing.T) {
	t.Parallel()
	all, dir := load(t)
	found := lint(t, dir)
	for name, m := range all {
		if !m.Expect.Host {
			assert.True(t, m.foundIn(found[name]), "%s: want %+v, got %+v", name, m.Expect, found[name])
		}
	}
}

// Ports override values of configs, which no run reads then.
func TestMistakes_AreNotFoundInOverriddenConfigs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ports.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"ports","name":"Ports","version":"1","settings":{"maxLoopbackIterations":2},
		"channels":{"c":{"reducer":"replace","schema":{"type":"string"}}},
		"nodes":[
			{"id":"items","typeId":"core.loop","config":{"expression":"item","items":[1,2,3]},"inputs":{"items":{"type":"static","value":[1]}}},
			{"id":"own","typeId":"core.loop","config":{"expression":"item","items":[1,2,3],"maxIterations":2},"inputs":{"items":{"type":"static","value":[1]}}},
			{"id":"count","typeId":"core.loop","config":{"expression":"item","count":3},"inputs":{"count":{"type":"static","value":1}}},
			{"id":"both","typeId":"core.loop","config":{"expression":"item","count":3},"inputs":{"items":{"type":"static","value":[1]}}},
			{"id":"write","typeId":"core.channelWrite","config":{"channelName":"c","value":1},"inputs":{"value":{"type":"static","value":"a"}}}]}`), 0o600))
	out, status := harness.Command(t, "workflow", "lint", file)
	require.Zero(t, status, out)
	require.NotContains(t, out, "problem")
}

// A definition without a mistake has no findings.
func TestMistakes_AreNotFoundInASoundDefinition(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sound.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"$schema":"http://127.0.0.1:8080/schemas/workflow.schema.json","id":"sound","name":"Sound","version":"1",
		"nodes":[{"id":"ask","typeId":"core.ai.callPrompt","config":{"prompt":"Summarise {{mail}}.","x-note":"mine"}}],
		"variables":[{"name":"mail","type":"string","required":true}]}`), 0o600))
	out, status := harness.Command(t, "workflow", "lint", file)
	require.Zero(t, status, out)
	require.Empty(t, out)
}

func TestMistakes_AreFoundByAHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	all, dir := load(t)
	h := harness.Start(t, "--provider", "anthropic=http://127.0.0.1:9") // nothing is called
	c := h.Client("dev-key")

	t.Run("workflow lint --url", func(t *testing.T) {
		found := lint(t, dir, "--url", h.HTTP)
		for name, m := range all {
			if m.Expect.Peer {
				continue
			}
			assert.True(t, m.foundIn(found[name]), "%s: want %+v, got %+v", name, m.Expect, found[name])
		}
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/workflows/mistake", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, a.Status, "nothing was registered")
	})
	conn, err := grpc.NewClient(h.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	for entrance, register := range map[string]func(*testing.T, string) (bool, []finding){
		"registration":           func(t *testing.T, doc string) (bool, []finding) { t.Helper(); return registerREST(t, c, doc) },
		"registration over gRPC": func(t *testing.T, doc string) (bool, []finding) { t.Helper(); return registerGRPC(t, conn, doc) },
	} {
		t.Run(entrance, func(t *testing.T) {
			for name, m := range all {
				if m.Expect.Peer {
					continue
				}
				var definition map[string]any
				require.NoError(t, json.Unmarshal(m.Definition, &definition))
				definition["version"] = name // the versions of one workflow
				doc, err := json.Marshal(definition)
				require.NoError(t, err)
				registered, found := register(t, string(doc))
				assert.True(t, m.foundIn(found), "%s: want %+v, got %+v", name, m.Expect, found)
				assert.Equal(t, m.Expect.Warning, registered, name)
			}
		})
	}
}

// registerREST registers a definition over REST.
func registerREST(t *testing.T, c *harness.Client, doc string) (registered bool, found []finding) {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", doc)
	require.NoError(t, err)
	var body struct {
		Error    string
		Warnings []finding
		Details  struct{ Problems []finding }
	}
	require.NoError(t, json.Unmarshal(a.Body, &body), "%s", a.Body)
	found = body.Details.Problems
	for _, w := range body.Warnings {
		w.Warning = true
		found = append(found, w)
	}
	if body.Error != "" {
		assert.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
		assert.Equal(t, "validation_error", body.Error)
		return false, found
	}
	assert.Contains(t, []int{http.StatusCreated, http.StatusOK}, a.Status, "%s", a.Body)
	return true, found
}

// registerGRPC registers a definition over gRPC.
func registerGRPC(t *testing.T, conn grpc.ClientConnInterface, doc string) (registered bool, found []finding) {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer dev-key")
	out, err := hostv1.NewHostClient(conn).PutWorkflow(ctx, &hostv1.PutWorkflowRequest{Definition: &openwopv1.JsonDocument{Json: []byte(doc)}})
	if err != nil {
		st, ok := status.FromError(err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, codes.InvalidArgument, st.Code(), "%v", err)
		require.NotEmpty(t, st.Proto().GetDetails(), "%v", err)
		var body struct{ Details struct{ Problems []finding } }
		require.NoError(t, json.Unmarshal(st.Proto().GetDetails()[0].GetValue(), &body))
		return false, body.Details.Problems
	}
	for _, w := range out.GetWarnings() {
		found = append(found, finding{Path: w.GetPath(), Rule: w.GetRule(), Message: w.GetMessage(), Warning: true})
	}
	return true, found
}

// A folder is read when the host starts and when a file changes.
func TestMistakes_AreFoundInFolders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	all, dir := load(t)
	watched := t.TempDir()
	h := harness.Start(t, "--workflows", dir, "--workflows", watched)
	for name, m := range all {
		if !m.Expect.Warning {
			h.AwaitLog(filepath.Join(dir, name+".json")) // a skipped file is logged
		}
	}
	file := filepath.Join(watched, "later.json")
	require.NoError(t, os.WriteFile(file, all["config-promt"].Definition, 0o600))
	require.Eventually(t, func() bool {
		log := h.Log()
		return strings.Contains(log, file) && strings.Contains(log, "did you mean prompt?")
	}, 30*time.Second, 20*time.Millisecond)
}
