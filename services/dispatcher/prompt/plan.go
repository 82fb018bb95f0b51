package prompt

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
)

// Part is a template of a composition, with the values that its reference brings.
type Part struct {
	Template  *Template
	Overrides map[string]json.RawMessage
}

// slot is a reference of a node's config, and the kind that it must be of; empty: any.
type slot struct {
	path string
	ref  Ref
	kind Kind
}

// nodeConfig are the members of a node's config that have to do with prompts.
type nodeConfig struct {
	System     json.RawMessage `json:"systemPromptRef"`
	User       json.RawMessage `json:"userPromptRef"`
	Additional json.RawMessage `json:"additionalPromptRefs"`
	PromptID   json.RawMessage `json:"promptId"`
	// Own words of the node, which a template would take the place of.
	SystemText json.RawMessage `json:"system"`
	UserText   json.RawMessage `json:"prompt"`
}

// Plan finds the templates that a node's config names, in the order in which the event
// tells them: system, user, others. pinned are the references of a composition that was
// made before, by which the newest version is still the one it was. No parts: the node
// names none.
func (l *Library) Plan(config json.RawMessage, pinned ...string) ([]Part, []Problem) {
	slots, found := readSlots(config, !l.Empty())
	var parts []Part
	for i, s := range slots {
		t, err := l.findPinned(s.ref, i, pinned)
		if err != nil {
			found = append(found, Problem{s.path, err.Message, err.Code})
			continue
		}
		if s.kind != "" && t.Kind != s.kind {
			found = append(found, invalid(s.path, "%s is a template of kind %s; this place takes one of kind %s", t.Ref(), t.Kind, s.kind))
		}
		found = append(found, t.checkOverrides(s)...)
		parts = append(parts, Part{t, s.ref.Overrides})
	}
	if len(found) > 0 {
		return nil, found
	}
	return parts, nil
}

func (l *Library) findPinned(r Ref, i int, pinned []string) (*Template, *fault.Error) {
	if r.Version == "" && i < len(pinned) {
		if before, wrong := parseShort(pinned[i]); wrong == nil && before.ID == r.ID {
			before.Library = r.Library
			if t, err := l.Find(before); err == nil {
				return t, nil
			}
		}
	}
	return l.Find(r)
}

// readSlots reads the references of a config. A config that is no object has none: the
// node fails on it anyway. An id without a scheme is a reference only where there are
// templates: other hosts' names for their own prompts look the same.
func readSlots(config json.RawMessage, bare bool) (slots []slot, found []Problem) {
	if !mayRefer(config) {
		return nil, nil
	}
	var c nodeConfig
	if strictjson.Read(config, &c) != nil {
		return nil, nil
	}
	take := func(path string, raw json.RawMessage, kind Kind) {
		r, wrong := ParseRef(raw)
		for _, p := range wrong {
			found = append(found, invalid(path+p.Path, "%s", p.Message))
		}
		if wrong == nil {
			slots = append(slots, slot{path: path, ref: r, kind: kind})
		}
	}
	if c.System != nil {
		take("/systemPromptRef", c.System, System)
	}
	if c.User != nil {
		take("/userPromptRef", c.User, User)
	}
	if s, ok := bareSlot(c.PromptID); ok && bare {
		slots = append(slots, s)
	} else if isRef(c.PromptID) {
		take("/promptId", c.PromptID, User)
	}
	if c.Additional != nil {
		var list []json.RawMessage
		if json.Unmarshal(c.Additional, &list) != nil {
			found = append(found, invalid("/additionalPromptRefs", "want an array of references"))
		}
		for i, raw := range list {
			take("/additionalPromptRefs/"+strconv.Itoa(i), raw, "")
		}
	}
	return slots, append(found, c.conflicts(slots)...)
}

// mayRefer tells, without reading it, of a config that names none of the members that refer:
// most do not, and each is looked at whenever its node is asked. Only an escape could hide a
// name.
func mayRefer(config json.RawMessage) bool {
	return bytes.Contains(config, []byte("PromptRef")) || bytes.Contains(config, []byte("promptId")) || bytes.Contains(config, []byte(`\u`))
}

// bareSlot reads a promptId that is the id of a template.
func bareSlot(raw json.RawMessage) (slot, bool) {
	var id string
	if json.Unmarshal(raw, &id) != nil || !bareID.MatchString(id) {
		return slot{}, false
	}
	return slot{path: "/promptId", ref: Ref{ID: id}, kind: User}, true
}

// isRef reports that a promptId means a template. Any other text is not this host's.
func isRef(raw json.RawMessage) bool {
	var id string
	return len(raw) > 0 && (raw[0] == '{' || json.Unmarshal(raw, &id) == nil && strings.HasPrefix(id, refScheme))
}

// conflicts are places that two members of the config want to fill.
func (c nodeConfig) conflicts(slots []slot) (found []Problem) {
	has := func(path string) bool { return slices.ContainsFunc(slots, func(s slot) bool { return s.path == path }) }
	both := func(path, other string) {
		found = append(found, invalid(path, "the node has %s, too; keep one of the two", other))
	}
	if has("/userPromptRef") && has("/promptId") {
		both("/promptId", "userPromptRef")
	}
	if has("/systemPromptRef") && hasText(c.SystemText) {
		both("/system", "systemPromptRef")
	}
	for _, p := range []string{"/userPromptRef", "/promptId"} {
		if has(p) && hasText(c.UserText) {
			both("/prompt", p[1:])
		}
	}
	return found
}

// hasText reports a text with something in it.
func hasText(raw json.RawMessage) bool { return !isMissing(raw) && string(raw) != `""` }

// checkOverrides refuses values for what the template does not have.
func (t *Template) checkOverrides(s slot) (found []Problem) {
	slots := t.slots()
	for _, name := range slices.Sorted(maps.Keys(s.ref.Overrides)) {
		at := s.path + "/variableOverrides/" + escapePointer(name)
		i := slices.IndexFunc(slots, func(v Variable) bool { return v.Name == name })
		switch raw := s.ref.Overrides[name]; {
		case i < 0:
			found = append(found, invalid(at, "the template %s has no variable of this name", t.Ref()))
		case !isMissing(raw) && !slots[i].accepts(raw):
			found = append(found, invalid(at, "want a value of the variable's type, %s", slots[i].Type))
		}
	}
	return found
}

// escapePointer writes a name as a token of a JSON pointer.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
