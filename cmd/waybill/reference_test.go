package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// Reflection is for developers.
func TestReflection_IsOnInDevAlone(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{"dev": "true", "serve gateway": "false"} {
		c, _, err := root(io.Discard, io.Discard).Find(strings.Fields(command))
		require.NoError(t, err)
		require.Equal(t, want, c.Flag("grpc-reflection").DefValue, command)
	}
}

// The page in the tree is the one the commands make: `make gen` was not forgotten.
func TestReference_IsWrittenDown(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	page, err := command(t, "", "reference", "markdown")
	require.NoError(t, err)
	require.Zero(t, strings.Compare(page, string(committed)), "docs/reference/cli.md is of other commands: run make gen") // not printed: it is long
}

func TestReference_WritesAManPageForEachCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := command(t, "", "reference", "man", dir)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(dir, "waybill-run-watch.1"))
	require.NoError(t, err)
	require.Contains(t, string(page), ".TH")
	_, err = os.Stat(filepath.Join(dir, "waybill-reference.1"))
	require.ErrorIs(t, err, os.ErrNotExist, "it is hidden")
}

// Each command that calls or starts something has an example, and no flag takes a secret.
func TestCommands_HaveExamplesAndNoFlagForASecret(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := c.CommandPath()
		if c.Hidden || strings.HasPrefix(path, "waybill reference") || strings.HasPrefix(path, "waybill serve") || path == "waybill dev" {
			return
		}
		require.NotEmpty(t, c.Short, path)
		if c.HasParent() && c.RunE != nil && !c.HasSubCommands() {
			require.NotEmpty(t, c.Example, path)
		}
		require.Nil(t, c.Flags().Lookup("token"), path)
		require.Nil(t, c.Flags().Lookup("api-key"), path)
	}
	walk(root(&bytes.Buffer{}, &bytes.Buffer{}))
}
