package pack

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// Host is what a pack can count on.
type Host struct {
	// Types are the node types of its own, of which a pack's can be made.
	Types []string
	// Capabilities are the families it offers, named as in discovery.
	Capabilities []string
	// Model reports whether some model that it can route to is known to have a model
	// capability; nil: none has any. It tells what the gate could satisfy, not what
	// discovery lists at the moment, which follows from the packs that are there
	// (OpenWOP envelope contract §16.5).
	Model func(capability string) bool
	// Protocol is the version of OpenWOP it speaks.
	Protocol string
	// InRange reports whether a version lies in a range such as ">=1.0 <2.0.0"; an
	// error says that the range is none. nil: versions are not looked at.
	InRange func(version, versions string) (bool, error)
	// Any is a host of which nothing is known, and which so offers whatever is
	// asked for: packs are looked at, not installed.
	Any bool
}

// unmet is a capability of the host that a pack asks for and does not get.
type unmet struct {
	path, what string
	optional   bool
}

// The spellings of a model capability among the peer dependencies: the family at
// the root, or below aiProviders as RFC 0055 has it (OpenWOP envelope contract
// §24, C15 and C17).
const (
	modelFamily    = "modelCapabilities"
	providerFamily = "aiProviders"
	supported      = "supported"
)

var modelCapability = regexp.MustCompile(`^([a-z][a-z0-9-]*|x-host-[a-z][a-z0-9-]*-[a-z][a-z0-9-]*)$`)

// unmetPeers are the peer dependencies that a host does not satisfy, sorted.
func (m *Manifest) unmetPeers(h Host) (missing []unmet, wrong []Problem) {
	for _, key := range sortedNames(m.PeerDependencies) {
		at := "/peerDependencies/" + escape(key)
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
			missing = append(missing, unmet{at, "the capability " + family, optional})
		}
		for _, id := range models {
			if h.Model == nil || !h.Model(id) {
				missing = append(missing, unmet{at, "a model with the capability " + id, optional})
			}
		}
	}
	return missing, wrong
}

// readPeer gives the model capabilities or the family that a peer dependency
// means. It is not ok if its meaning is unknown, so that nobody can say whether
// the host satisfies it.
func readPeer(key string, value json.RawMessage) (models []string, family string, ok bool) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		var nested struct {
			IDs []string `json:"modelCapabilities"`
		}
		err := strictjson.Read(value, &nested)
		return nested.IDs, "", err == nil // the manifest's schema has judged the ids
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

// escape writes a reference token of a JSON pointer (RFC 6901 §3).
func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
