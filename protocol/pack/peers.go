package pack

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Host describes what a pack can rely on.
type Host struct {
	// Types are the host's own node types, which can implement a pack's.
	Types []string
	// Capabilities are the families the host offers, named as in discovery.
	Capabilities []string
	// Model reports whether any routable model has a model capability; nil if none has any. It
	// reports what the gate could satisfy. Discovery lists what the installed packs require
	// (OpenWOP envelope contract §16.5).
	Model func(capability string) bool
	// Protocol is the host's version of OpenWOP.
	Protocol string
	// InRange reports whether a version is in a range such as ">=1.0 <2.0.0"; an error means that
	// the range is invalid. nil if versions are not checked.
	InRange func(version, versions string) (bool, error)
	// CheckConfig returns the problems of the config members that a pack sets for a node type of the
	// host; nil checks nothing. own is the pack's schema of the config, nil without one. Paths are
	// relative to the config, and files are empty.
	CheckConfig func(base string, own *schema.Schema, config map[string]json.RawMessage) []Problem
	// Outputs lists the output ports of a node type of the host; empty if they are unknown.
	Outputs func(base string) []string
	// Partial means that other packs may be installed, too. A missing one is a note then.
	Partial bool
	// Any is an unknown host that satisfies all requirements, for inspecting packs without
	// installing them.
	Any bool
}

// unmet is a required capability that the host lacks.
type unmet struct {
	path, what string
	optional   bool
	// meant is a capability of the host with a similar name; empty without one.
	meant string
}

// The spellings of a model capability in the peer dependencies: at the root, or below aiProviders
// as in RFC 0055 (OpenWOP envelope contract §24, C15 and C17).
const (
	modelFamily    = "modelCapabilities"
	providerFamily = "aiProviders"
	supported      = "supported"
)

var modelCapability = regexp.MustCompile(`^([a-z][a-z0-9-]*|x-host-[a-z][a-z0-9-]*-[a-z][a-z0-9-]*)$`)

// unmetPeers returns the peer dependencies that a host does not satisfy, sorted.
func (m *Manifest) unmetPeers(h Host) (missing []unmet, wrong []Problem) {
	for _, key := range sortedNames(m.PeerDependencies) {
		at := "/peerDependencies/" + jsonpointer.Escape(key)
		models, family, ok := readPeer(key, m.PeerDependencies[key])
		if !ok {
			wrong = append(wrong, Problem{File, at, "want \"supported\" for a capability of the host, or the ids of model capabilities, such as \"vision-input\", under aiProviders.modelCapabilities"})
			continue
		}
		if h.Any {
			continue
		}
		optional := m.PeerMeta[key].Optional
		if family != "" && !slices.Contains(h.Capabilities, family) {
			missing = append(missing, unmet{at, "the capability " + family, optional, schema.Near(family, h.Capabilities)})
		}
		for _, id := range models {
			if h.Model == nil || !h.Model(id) {
				missing = append(missing, unmet{at, "a model with the capability " + id, optional, ""})
			}
		}
	}
	return missing, wrong
}

// readPeer returns the model capabilities or the family of a peer dependency. ok is false if its
// meaning is unknown, so that it cannot be checked.
func readPeer(key string, value json.RawMessage) (models []string, family string, ok bool) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		var nested struct {
			IDs []string `json:"modelCapabilities"`
		}
		err := strictjson.Read(value, &nested)
		return nested.IDs, "", err == nil // the manifest's schema has validated the ids
	}
	name := key
	if rest, below := strings.CutPrefix(key, providerFamily+"."); below && strings.HasPrefix(rest, modelFamily) {
		name = rest
	}
	id, single := strings.CutPrefix(name, modelFamily+".")
	switch {
	case single:
		return []string{id}, "", text == supported && modelCapability.MatchString(id)
	case text == supported:
		return nil, name, true
	case name == modelFamily:
		models = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
		strange := slices.ContainsFunc(models, func(id string) bool { return !modelCapability.MatchString(id) })
		return models, "", len(models) > 0 && !strange
	}
	return nil, "", false
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
