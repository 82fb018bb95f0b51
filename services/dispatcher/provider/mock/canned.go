package mock

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// canned are the providers of configurable.mockProvider (OpenWOP host contract §2.3).
var canned = map[string]func(*members) provider.Provider{
	"stream-text": newStreamText,
	"tool-calls":  newToolCalls,
	"error":       newFailure,
	"usage-only":  newUsageOnly,
}

// CannedIDs returns the valid ids of configurable.mockProvider, sorted, for discovery.
func CannedIDs() []string { return slices.Sorted(maps.Keys(canned)) }

// Canned returns the provider that configurable.mockProvider names. config is its config member;
// empty uses all defaults. It is read strictly: the error names every unknown, duplicate or
// out-of-range member.
func Canned(id string, config json.RawMessage) (provider.Provider, error) {
	build, ok := canned[id]
	if !ok {
		return nil, fmt.Errorf("id: %q is no mock provider; want one of %s", id, strings.Join(CannedIDs(), ", "))
	}
	m, err := parseMembers("config", config)
	if err != nil {
		return nil, err
	}
	p := build(m)
	if err := m.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// maxDelayMs limits delayMsPerToken and failAfterMs.
const maxDelayMs = 5000

// usageMember reads {promptTokens, completionTokens, totalTokens}. Missing counts default to def's,
// and the total to the sum.
func usageMember(m *members, def provider.Usage) provider.Usage {
	o, ok := m.object("usage")
	if !ok {
		return def
	}
	const most = 1 << 40
	u := usage(o.integer("promptTokens", def.InputTokens, 0, most), o.integer("completionTokens", def.OutputTokens, 0, most))
	u.TotalTokens = o.integer("totalTokens", u.TotalTokens, 0, 2*most)
	m.addErrors(o)
	return u
}
