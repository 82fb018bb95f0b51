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

// Which flags say who may call a service, and how it calls others, is in one table of
// docs/services.md: of each service all that it has, and none that it has not.
func TestServices_TheTableOfWhoMayCallWhomIsTheirs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/services.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Who may call whom\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	all := slices.DeleteFunc(servers(), func(d documented) bool { return d.name == "dev" })
	told := map[string][]string{} // flags by service
	for _, row := range regexp.MustCompile(`(?m)^\| (.*--.*?) \| (.*?) \|`).FindAllStringSubmatch(section, -1) {
		for _, s := range all {
			of := row[2] == "all" || row[2] == "all but the gateway" && s.name != "gateway" || slices.Contains(strings.Split(row[2], ", "), s.name)
			if of {
				for _, f := range regexp.MustCompile(`--[a-z-]+`).FindAllString(row[1], -1) {
					told[s.name] = append(told[s.name], strings.TrimPrefix(f, "--"))
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
		require.ElementsMatch(t, has, told[s.name], s.name)
	}
}
