package contextcmd_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	library "github.com/zalando/go-keyring"

	"waybill.dev/waybill/internal/cli/contextcmd"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/session"
)

// shell runs context commands of one user.
type shell struct {
	t    *testing.T
	home string
}

func (s shell) file() string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.home, "waybill", "contexts.yaml"))
	require.NoError(s.t, err)
	return string(b)
}

func (s shell) run(stdin string, args ...string) (stdout, stderr string, err error) {
	s.t.Helper()
	at := session.New()
	at.Getenv = func(name string) string { return map[string]string{"XDG_CONFIG_HOME": s.home}[name] }
	c := contextcmd.Command(at)
	c.SilenceErrors, c.SilenceUsage = true, true
	var o, e bytes.Buffer
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(&o)
	c.SetErr(&e)
	c.SetArgs(args)
	err = c.ExecuteContext(s.t.Context())
	return o.String(), e.String(), err
}

func (s shell) ok(stdin string, args ...string) string {
	s.t.Helper()
	out, _, err := s.run(stdin, args...)
	require.NoError(s.t, err)
	return out
}

// kept returns the keyring's credential for prod at a URL.
func kept(url string) string {
	secret, err := library.Get("waybill", "prod at "+url)
	if err != nil {
		return ""
	}
	return secret
}

const (
	prodURL  = "https://prod.example"
	otherURL = "https://other.example"
)

// The library's mock is global, so these tests do not run in parallel.
func TestSet_KeepsACredentialInTheKeyringAndNotInTheFile(t *testing.T) {
	library.MockInit()
	s := shell{t, t.TempDir()}
	s.ok("secret-1\n", "set", "prod", "--url", prodURL, "--token-stdin", "--keyring")
	require.Equal(t, "secret-1", kept(prodURL))
	require.NotContains(t, s.file(), "secret-1")
	shown := s.ok("", "show", "--source") + s.ok("", "show", "prod") + s.ok("", "list", "-o", "json")
	require.Regexp(t, `token +\(set, not shown\) +context prod, keyring`, shown)
	require.Regexp(t, `credential +keyring`, shown)
	require.NotContains(t, shown, "secret-1")
	require.Regexp(t, `token +- +none`, s.ok("", "show", "--source", "--url", otherURL), "the credential is for its own host only")

	s.ok("secret-2\n", "set", "prod", "--token-stdin", "--keyring")
	require.Equal(t, "secret-2", kept(prodURL))
	s.ok("", "rm", "prod")
	require.Empty(t, kept(prodURL))
}

func TestSet_MovesACredentialFromTheFileToTheKeyring(t *testing.T) {
	library.MockInit()
	s := shell{t, t.TempDir()}
	_, _, err := s.run("", "set", "prod", "--url", prodURL, "--keyring")
	require.Equal(t, exit.Usage, exit.Status(err))
	s.ok("secret-1\n", "set", "prod", "--url", prodURL, "--token-stdin")
	require.Contains(t, s.file(), "secret-1")
	s.ok("", "set", "prod", "--keyring")
	require.Equal(t, "secret-1", kept(prodURL))
	require.NotContains(t, s.file(), "secret-1")
	s.ok("", "set", "prod", "--keyring")
	require.Equal(t, "secret-1", kept(prodURL), "setting it again changes nothing")
	s.ok("", "set", "prod", "--no-token")
	require.Empty(t, kept(prodURL))
}

// A credential of one host is never sent to another.
func TestSet_NeedsANewCredentialForANewURL(t *testing.T) {
	library.MockInit()
	s := shell{t, t.TempDir()}
	s.ok("secret-1\n", "set", "prod", "--url", prodURL, "--token-stdin", "--keyring")
	_, _, err := s.run("", "set", "prod", "--url", otherURL)
	require.Equal(t, exit.Usage, exit.Status(err))
	require.ErrorContains(t, err, prodURL)
	s.ok("secret-2\n", "set", "prod", "--url", otherURL, "--token-stdin", "--keyring")
	require.Equal(t, "secret-2", kept(otherURL))
	require.Empty(t, kept(prodURL), "the unused credential was deleted")

	require.NoError(t, library.Delete("waybill", "prod at "+otherURL))
	_, _, err = s.run("", "show", "--source")
	require.Equal(t, exit.Denied, exit.Status(err))
	require.ErrorContains(t, err, "waybill context set prod --token-stdin --keyring")
}

func TestSet_WithoutAKeyringChangesNothingAndNamesAlternatives(t *testing.T) {
	library.MockInit()
	s := shell{t, t.TempDir()}
	s.ok("secret-1\n", "set", "prod", "--url", prodURL, "--token-stdin", "--keyring")
	before := s.file()
	for want, cause := range map[string]error{
		"no usable keyring in this session: no session bus": errors.New("no session bus"),
		"too long for this keyring":                         library.ErrSetDataTooBig,
	} {
		library.MockInitWithError(cause)
		_, _, err := s.run("secret-2\n", "set", "prod", "--token-stdin", "--keyring")
		require.Equal(t, exit.Failed, exit.Status(err))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "--token-file")
		require.NotContains(t, err.Error(), "secret-2")
		require.Equal(t, before, s.file())
	}
	library.MockInitWithError(errors.New("no session bus"))
	_, _, err := s.run("", "show", "--source")
	require.Equal(t, exit.Denied, exit.Status(err))
	require.ErrorContains(t, err, "WAYBILL_TOKEN")
	_, stderr, err := s.run("", "rm", "prod")
	require.NoError(t, err)
	require.Contains(t, stderr, "may still be in the keyring")
}
