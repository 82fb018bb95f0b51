// Package clitest runs commands in tests as the root command does.
package clitest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
)

// Run runs a command line; args begin with the name of c.
func Run(t testing.TB, c *cobra.Command, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "waybill", SilenceUsage: true, SilenceErrors: true}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.With(exit.Usage, err) })
	root.AddCommand(c)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&bytes.Buffer{})
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return out.String(), err
}

// NotePack and NoteKinds are the manifests of a pack with one envelope kind, whose schema is
// schemas/note.json.
const (
	NotePack  = `{"name":"vendor.acme.notes","version":"1.0.0","engines":{"openwop":">=1.0"}}`
	NoteKinds = `{"envelopeKinds":[{"kind":"vendor.acme.note","version":2,"schemaRef":"schemas/note.json"}]}`
)

// Folder writes files to a temporary folder and returns its path.
func Folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}
