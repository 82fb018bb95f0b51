// Package clients generates clients from the API description of a real host with the generators that
// docs/clients.md names, compiles them, and lets each start, follow and answer a run. It also validates
// the AsyncAPI document, and what the host sends against it. `make integration ONLY=clients` installs
// the generators.
package clients

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// The commands of docs/clients.md.
var commands = struct{ openapiTypescript, heyAPI, oapiCodegen string }{
	"npx openapi-typescript openapi.json -o schema.d.ts",
	"npx @hey-api/openapi-ts -i openapi.json -o sdk",
	"go tool oapi-codegen -generate types,client -package waybill -o waybill/client.go openapi.json",
}

func TestDocs_HaveTheCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "clients.md"))
	require.NoError(t, err)
	for _, command := range []string{commands.openapiTypescript, commands.heyAPI, commands.oapiCodegen} {
		require.Contains(t, string(page), "\n"+command+"\n")
	}
}

// Each client starts a run with a key, follows it with the types of its events, reads the snapshot, answers
// the approval, reads on condition, pages through a list, filters one, registers a webhook, and reads errors
// with the types of their details.
func TestClients_FollowARun(t *testing.T) {
	t.Parallel()
	document := read(t, start(t), "/v1/openapi.json")
	limited := func(t *testing.T) *harness.Host {
		t.Helper()
		return start(t, "--rate-limit", "key:start=3/h")
	}
	const (
		asked = "interrupt.requested accept,reject\n"
		ended = "node.completed gate action,decidedAt,decidedBy\nrun.completed\ncompleted completed\n"
		lists = "304\ntrue\ntrue\nactive\n204\n" +
			"400 validation_error query limit\n404 run_not_found\n429 rate_limited route 3 true\n"
		all = "true true\nrun.started small-gate default\nnode.started\nnode.suspended\n" + asked + "%sapproval.requested\n" +
			"interrupt.resolved\napproval.received accept\nnode.resumed\n" + ended + lists
		updates = "true true\nrun.started small-gate default\nnode.suspended\n" + asked + "waiting-approval Ship it? advanced\napproval.requested\n" +
			"interrupt.resolved\napproval.received accept\n" + ended + "true true\n" + lists
	)
	t.Run("TypeScript", func(t *testing.T) {
		t.Parallel()
		dir := typescript(t, "openapi.json", document)
		// npx runs the same programs, but checks for newer versions first.
		bin := filepath.Join("node_modules", ".bin")
		call(t, dir, filepath.Join(bin, "openapi-typescript"), arguments(commands.openapiTypescript)...)
		call(t, dir, filepath.Join(bin, "openapi-ts"), arguments(commands.heyAPI)...)
		call(t, dir, filepath.Join(bin, "tsc"), "-p", ".")
		require.Equal(t, fmt.Sprintf(all, "waiting-approval Ship it? false accept\nadvanced\n"), call(t, dir, "node", "out/follow.js", limited(t).HTTP, "dev-key"))
		require.Equal(t, updates, call(t, dir, "node", "out/stream.js", limited(t).HTTP, "dev-key"))
	})
	t.Run("Go", func(t *testing.T) {
		t.Parallel()
		dir := golang(t, document)
		command := strings.Fields(commands.oapiCodegen)
		call(t, dir, command[0], command[1:]...)
		call(t, dir, "go", "build", "-o", "follow", ".")
		require.Equal(t, fmt.Sprintf(all, "waiting-approval Ship it? advanced\n"), call(t, dir, filepath.Join(dir, "follow"), limited(t).HTTP, "dev-key"))
	})
}

// start starts a host with the example that waits for an approval.
func start(t *testing.T, args ...string) *harness.Host {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "small"))
	require.NoError(t, err)
	return harness.Start(t, append([]string{"--workflows", examples, "--durability", "process"}, args...)...)
}

// read returns a public document of a host.
func read(t *testing.T, host *harness.Host, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, host.HTTP+path, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	doc, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return doc
}

// typescript returns a folder with the sources of the TypeScript clients, the installed packages and a
// document of the host.
func typescript(t *testing.T, name string, document []byte) string {
	t.Helper()
	modules, err := filepath.Abs(filepath.Join("ts", "node_modules"))
	require.NoError(t, err)
	if _, err := os.Stat(modules); err != nil {
		t.Skip("SKIPPED, ts/node_modules is missing: run `make integration ONLY=clients`")
	}
	dir := t.TempDir()
	for _, file := range []string{"tsconfig.json", "follow.ts", "stream.ts", "asyncapi.js"} {
		source, err := os.ReadFile(filepath.Join("ts", file))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), source, 0o600))
	}
	require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), document, 0o600))
	return dir
}

// golang returns a folder with the module of the Go client and the API description.
func golang(t *testing.T, document []byte) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("go")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "waybill"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600))
	return dir
}

// arguments returns the arguments of an npx command.
func arguments(command string) []string { return strings.Fields(command)[2:] }

// call runs a command and returns its output.
func call(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...) //nolint:gosec // G204: our own command
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s%s", name, strings.Join(args, " "), out, failed.String())
	return string(out)
}
