package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/harness"
)

// offline is a user whose host is unreachable.
func offline(t *testing.T) user { return at(t, "http://127.0.0.1:1", "") }

// shells load their scripts and print what is completed. Only fish completes without a terminal,
// and bash needs functions from a separate Debian package.
var shells = map[string]struct {
	call []string
	want string
}{
	"bash": {[]string{"bash", "--norc", "-c", `. "$1" && complete -p waybill`, "bash"}, `-F __start_waybill`},
	"zsh":  {[]string{"zsh", "-f", "-c", `autoload -Uz compinit && compinit -u -D && . "$1" && print -- $_comps[waybill] && whence -w _waybill`, "zsh"}, `^_waybill\n_waybill: function`},
	"fish": {[]string{"fish", "--no-config", "-c", `source $argv[1]; complete -C "waybill run wat"`}, `^watch\b`},
}

func TestL8_CompletionScriptsLoad(t *testing.T) {
	t.Parallel()
	u := offline(t)
	require.NotEmpty(t, u.ok("completion", "powershell").out)
	dir := t.TempDir()
	require.NoError(t, os.Symlink(harness.Binary(t), filepath.Join(dir, "waybill")))
	for shell, load := range shells {
		t.Run(shell, func(t *testing.T) {
			script := u.ok("completion", shell).out
			require.NotEmpty(t, script)
			if _, err := exec.LookPath(shell); err != nil {
				require.Empty(t, os.Getenv("WAYBILL_SHELLS"), "make integration did not install %s", shell)
				t.Skipf("SKIPPED, %s is not installed: run `make integration ONLY=shells`", shell)
			}
			path := filepath.Join(dir, shell)
			require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
			cmd := exec.CommandContext(t.Context(), load.call[0], append(load.call[1:], path)...)
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "WAYBILL_URL=http://127.0.0.1:1")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Regexp(t, load.want, string(out))
		})
	}
}

func TestL8_CompletionOffersVerbsRunsAndNodes(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("approve")
	offered := func(args ...string) string { return u.ok(append([]string{"__complete"}, args...)...).out }
	require.Contains(t, offered("run", ""), "watch\t")
	require.Contains(t, offered("run", "get", ""), id)
	require.Contains(t, offered("run", "start", "app"), "approve\t")
	require.Contains(t, offered("interrupt", "answer", ""), id)
	require.Contains(t, offered("interrupt", "answer", id, ""), "gate\t")
	require.Contains(t, offered("explain", "envelope_"), "envelope_invalid")
	away := offline(t).ok("__complete", "run", "get", "")
	require.Contains(t, away.out, "@latest", "completion without a host must be fast")
}

// Every code and every type is explained without a host.
func TestL9_ExplainCoversEveryName(t *testing.T) {
	t.Parallel()
	u := offline(t)
	text := u.ok("explain", "envelope_invalid").out
	row := fault.Lookup(fault.EnvelopeInvalid)
	require.Contains(t, text, row.Meaning)
	require.Contains(t, text, row.Next)
	require.Contains(t, text, string(row.Owner))
	if testing.Short() {
		t.Skip("SKIPPED, explains each name: run without -short")
	}
	names := u.ok("__complete", "explain", "").out
	for _, c := range fault.Codes() {
		require.Contains(t, names, string(c)+"\n")
	}
	for _, typ := range wire.EventTypes() {
		require.Contains(t, names, string(typ)+"\n")
	}
	require.Contains(t, u.ok("explain", "artifact.created").out, "artifact")
}

func TestL9_ExplainSuggestsForAnUnknownName(t *testing.T) {
	t.Parallel()
	u := offline(t)
	r := u.run("explain", "envelope_invald")
	require.Equal(t, 5, r.status)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "did you mean envelope_invalid?")
	require.Equal(t, 5, u.run("cheat", "rnus").status)
	require.Contains(t, u.run("cheat", "rnus").err, "runs")
	require.Contains(t, u.ok("cheat", "runs").out, "waybill run start")
	require.True(t, strings.HasPrefix(u.ok("version").out, "waybill "), "starts with the name of the program")
}

// L9: a user without a name finds it in a list.
func TestL9_ExplainWithoutANameListsAll(t *testing.T) {
	t.Parallel()
	u := offline(t)
	require.Regexp(t, `(?m)^envelope_invalid +error +The payload`, u.ok("explain").out)
	names := u.ok("explain", "-o", "name").out
	require.Len(t, strings.Fields(names), len(fault.Codes())+len(wire.EventTypes()))
	r := u.run("explain", "zzzzzz", "-o", "json")
	require.Equal(t, 5, r.status)
	require.Empty(t, r.out)
	require.Contains(t, r.err, `"error":"not_found"`)
	require.Contains(t, r.err, "waybill explain lists all names")
}
