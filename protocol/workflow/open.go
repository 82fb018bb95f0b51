package workflow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/protocol/wire"
)

// The known members of the open objects. Other members are allowed, because other hosts may define more
// (OpenWOP host contract §5.1). A name that is almost a known one is a mistake.
var (
	settingsMembers     = []string{"timeout", "maxRetries", "logLevel", "maxLoopbackIterations", "priority", "concurrency", "rate", "retention"}
	nodeSettingsMembers = []string{"maxRetries", "timeoutMs", "retry", "questions", "onUnknownOutcome"}
	complianceMembers   = []string{"complianceClass", "complianceConfig"}
)

// contractMembers are the members of an envelope contract, which is closed.
var contractMembers = []string{"accepts", "refusalMode", "alwaysAccepted"}

// checkOpen finds misspelled members of open objects, and unknown members and values of envelope
// contracts. Stored definitions may have them.
func checkOpen(d *Definition, found *problems) {
	checkNear(members(members(d.Raw)["settings"]), "/settings", settingsMembers, found)
	for i := range d.Nodes {
		checkNear(members(d.Nodes[i].Settings), pointer("nodes", i, "settings"), nodeSettingsMembers, found)
		checkContractMembers(&d.Nodes[i], pointer("nodes", i, "envelopeContract"), found)
	}
}

// checkNear finds members that are almost known ones.
func checkNear(o object, at string, known []string, found *problems) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if slices.Contains(known, name) || strings.HasPrefix(name, "x-") {
			continue
		}
		if i := slices.IndexFunc(known, func(k string) bool { return almost(name, k) && o[k] == nil }); i >= 0 {
			found.add(at+pointer(name), RuleUnknownMember, "unknown member; did you mean "+known[i]+"? Members of your own begin with x-")
		}
	}
}

// almost reports whether a name is most likely a known one, misspelled.
func almost(name, known string) bool {
	plain := strings.NewReplacer("_", "", "-", "")
	name, known = plain.Replace(strings.ToLower(name)), strings.ToLower(known)
	return len(name) <= 64 && suggest.Distance(name, known) <= min(2, len(name)/3)
}

// UnknownSettings returns warnings about unknown settings, and about metadata whose name is almost a known
// one.
func (d *Definition) UnknownSettings() []Problem {
	var out problems
	metadata := members(members(d.Raw)["metadata"])
	checkNear(metadata, "/metadata", complianceMembers, &out)
	checkNear(members(metadata["complianceConfig"]), "/metadata/complianceConfig", []string{"maskingMode"}, &out)
	warn := func(raw json.RawMessage, at string, known []string) {
		o := members(raw)
		for _, name := range slices.Sorted(maps.Keys(o)) {
			if slices.Contains(known, name) || strings.HasPrefix(name, "x-") {
				continue
			}
			text := "this host has no such setting, so it has no effect; "
			if meant := schema.Meant(name, known, o); meant != "" {
				text += meant + " "
			}
			out.add(at+pointer(name), RuleUnknownMember, text+"settings are "+strings.Join(known, ", "))
		}
	}
	warn(members(d.Raw)["settings"], "/settings", settingsMembers)
	for i := range d.Nodes {
		warn(d.Nodes[i].Settings, pointer("nodes", i, "settings"), nodeSettingsMembers)
	}
	return out
}

// checkContractMembers finds members and values that an envelope contract must not have.
func checkContractMembers(n *Node, at string, found *problems) {
	o := members(n.EnvelopeContract)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(contractMembers, name) && !strings.HasPrefix(name, "x-") {
			found.add(at+pointer(name), RuleUnknownMember, schema.UnknownMember(name, contractMembers, o))
		}
	}
	if found.touch(at) {
		return
	}
	for _, list := range []string{"accepts", "alwaysAccepted"} {
		var kinds []json.RawMessage
		if json.Unmarshal(o[list], &kinds) != nil {
			continue // reported as a whole
		}
		seen := map[string]int{}
		for i, raw := range kinds {
			kind, isText := strictjson.String(raw)
			path := at + pointer(list, i)
			first, twice := seen[kind]
			switch {
			case !isText || kind == "":
				found.add(path, RuleContract, "want the name of an envelope kind, such as vendor.acme.note")
			case twice:
				found.add(path, RuleContract, "the kind is already listed at "+at+pointer(list, first)+"; remove one")
			case list == "alwaysAccepted" && !wire.IsUniversal(kind):
				found.add(path, RuleContract, "only the universal kinds are always accepted: "+strings.Join(wire.Universals(), ", ")+"; list others under accepts")
			}
			seen[kind] = i
		}
	}
}
