package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The order is flag, environment, context, default; --source shows the winner.
func TestL6a_PrecedenceOfSettings(t *testing.T) {
	t.Parallel()
	u := stranger(t)
	shown := func(u user, args ...string) string {
		return u.ok(append([]string{"context", "show", "--source"}, args...)...).out
	}
	require.Regexp(t, `url +http://127\.0\.0\.1:8080 +default`, shown(u))
	u.typing("secret-of-prod\n").ok("context", "set", "prod", "--url", "https://prod.example/a", "--token-stdin")
	require.Regexp(t, `url +https://prod\.example/a +context prod`, shown(u))
	require.Regexp(t, `token +\(set, not shown\) +context prod`, shown(u))
	u.ok("context", "set", "other", "--url", "https://other.example")
	require.Regexp(t, `url +https://other\.example +context other`, shown(u.with("WAYBILL_CONTEXT=other")))
	require.Regexp(t, `context +prod +flag --context`, shown(u.with("WAYBILL_CONTEXT=other"), "--context", "prod"))
	env := u.with("WAYBILL_URL=https://env.example", "WAYBILL_TOKEN=secret-of-env")
	require.Regexp(t, `url +https://env\.example +environment WAYBILL_URL`, shown(env))
	require.Regexp(t, `token +\(set, not shown\) +environment WAYBILL_TOKEN`, shown(env))
	require.Regexp(t, `url +https://flag\.example +flag --url`, shown(env, "--url", "https://flag.example"))
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("secret-of-file\n"), 0o600))
	require.Regexp(t, `token +\(set, not shown\) +flag --token-file`, shown(env, "--token-file", file))
	require.Regexp(t, `token +- +none`, shown(u.with("WAYBILL_URL=https://env.example")), "the credential of a context is for its host")
}

func TestL6b_ACredentialIsNeverPrinted(t *testing.T) {
	t.Parallel()
	u := stranger(t)
	const secret = "wb_secret_4711"
	u.typing(secret).ok("context", "set", "prod", "--url", "https://prod.example", "--token-stdin", "--use")
	all := ""
	for _, args := range [][]string{
		{"context", "show", "--source"},
		{"context", "show", "prod", "-o", "json"},
		{"context", "list", "-o", "yaml"},
		{"context", "list", "-o", "wide"},
		{"context", "show", "-o", "json"},
		{"doctor", "--url", "http://127.0.0.1:1"},
		{"run", "list", "--url", "http://127.0.0.1:1"},
	} {
		r := u.run(args...)
		all += r.out + r.err
	}
	require.NotContains(t, all, secret)
	var path string
	for _, v := range u.env {
		if dir, ok := strings.CutPrefix(v, "XDG_CONFIG_HOME="); ok {
			path = filepath.Join(dir, "waybill", "contexts.yaml")
		}
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.Chmod(path, 0o644))
	r := u.run("run", "list")
	require.Equal(t, 2, r.status)
	require.Contains(t, r.err, "chmod 600")
}

func TestL6c_ContextsAreStored(t *testing.T) {
	t.Parallel()
	u := stranger(t)
	u.ok("context", "set", "a", "--url", "http://127.0.0.1:1111")
	u.ok("context", "set", "b", "--url", "http://127.0.0.1:2222")
	require.Equal(t, "a\nb\n", u.ok("context", "list", "-o", "name").out)
	require.Regexp(t, `(?m)^\* +a `, u.ok("context", "list").out, "the first is the current one")
	u.ok("context", "use", "b")
	require.Regexp(t, `(?m)^\* +b `, u.ok("context", "list").out)
	u.ok("context", "rm", "b")
	require.Equal(t, 5, u.run("context", "use", "b").status)
	require.Equal(t, 5, u.run("run", "list", "--context", "b").status)
	require.Equal(t, 2, u.run("context", "set", "c d", "--url", "http://x").status)
	require.Equal(t, 2, u.run("context", "set", "c", "--token-stdin", "--url", "http://x").status, "no first line")
}

// Without a keyring the command reports that immediately, with the alternatives.
func TestL6d_ASessionWithoutAKeyringGetsAWarning(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED, the keyring of this system does not depend on the environment: run it on Linux")
	}
	u := stranger(t).with("DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
	r := u.typing("secret-1\n").run("context", "set", "prod", "--url", "https://prod.example", "--token-stdin", "--keyring")
	require.Equal(t, 1, r.status)
	require.Contains(t, r.err, "no usable keyring in this session")
	require.Contains(t, r.err, "--token-file")
	require.NotContains(t, r.err, "secret-1")
	require.Empty(t, u.ok("context", "list", "-o", "name").out, "nothing is stored")
}
