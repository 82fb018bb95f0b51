package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/config"
)

// docs/operations.md lists each flag of `waybill dev` once, in order, with its variable,
// and no other.
func TestDocs_ListEachFlagOfDev(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, settings, _ := strings.Cut(string(page), "## Settings\n")
	settings, _, _ = strings.Cut(settings, "\n## ")
	var listed, flags []string
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\| `([A-Z0-9_]+)` \\|").FindAllStringSubmatch(settings, -1) {
		listed = append(listed, row[1])
		require.Equal(t, config.EnvName(row[1]), row[2])
	}
	devCommand().Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f.Name) })
	slices.Sort(flags)
	require.Equal(t, flags, listed)
}
