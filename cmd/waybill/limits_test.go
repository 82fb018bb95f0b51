package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// limitDefaults are the defaults of the flags of the table in docs/security.md: as the flag has it, and
// as in the table.
var limitDefaults = map[string][2]string{
	"transfer-start":       {"5s", "5 s to begin"},
	"min-transfer-rate":    {"8192", "8,192 bytes a second"},
	"transfer-timeout":     {"1m0s", "1 minute in all"},
	"max-requests":         {"2000", "2,000"},
	"max-starts":           {"500", "500"},
	"max-streams":          {"10000", "10,000"},
	"max-unknown-requests": {"64", "64 from one address"},
	"max-grpc-streams":     {"250", "250 streams"},
	"max-bytes-in-flight":  {"0", "1/48 of the process's memory"},
	"rate-limit":           {"[]", "none by default"},
	"rate-limits":          {"", "none by default"},
}

// The table of limits has every flag that refers to it, no other one, and its default.
func TestSecurity_TheTableOfLimitsHasTheFlagsOfToday(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "\n## Limits on callers\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	flags := servers()[0].flags
	row := regexp.MustCompile(`(?m)^\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|$`)
	inTable := map[string]string{}
	for _, cells := range row.FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(cells[3], -1) {
			require.NotNil(t, flags.Lookup(name[1]), "`waybill dev` has no flag --%s", name[1])
			inTable[name[1]] += cells[2]
		}
	}
	for name, page := range explained {
		if page == callerLimits {
			require.Contains(t, inTable, name, "docs/reference/configuration.md refers to the table for --%s", name)
		}
	}
	for name, said := range limitDefaults {
		require.Equal(t, said[0], flags.Lookup(name).DefValue, "--%s", name)
		require.Contains(t, inTable[name], said[1], "--%s", name)
	}
}
