package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// The table in docs/services.md has all flags that control access between services, with the
// services that have each flag.
func TestServices_TheTableOfAccessFlagsIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/services.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Access between services\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	all := slices.DeleteFunc(servers(), func(d documented) bool { return d.name == "dev" })
	listed := map[string][]string{} // flags by service
	for _, row := range regexp.MustCompile(`(?m)^\| (.*--.*?) \| (.*?) \|`).FindAllStringSubmatch(section, -1) {
		for _, s := range all {
			of := row[2] == "all" || row[2] == "all but the gateway" && s.name != "gateway" || slices.Contains(strings.Split(row[2], ", "), s.name)
			if of {
				for _, f := range regexp.MustCompile(`--[a-z-]+`).FindAllString(row[1], -1) {
					listed[s.name] = append(listed[s.name], strings.TrimPrefix(f, "--"))
				}
			}
		}
	}
	guards := regexp.MustCompile(`^(tls-|peer-|redactor-|token-file$|insecure$)`)
	for _, s := range all {
		var has []string
		s.flags.VisitAll(func(f *pflag.Flag) {
			if guards.MatchString(f.Name) {
				has = append(has, f.Name)
			}
		})
		require.ElementsMatch(t, has, listed[s.name], s.name)
	}
}
