package prompt

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
)

// Part is a template of a composition, with the overrides of its reference.
type Part struct {
	Template  *Template
	Overrides map[string]json.RawMessage
}

// slot is a reference in a node's config and its required kind; empty allows any.
type slot struct {
	path string
	ref  Ref
	kind Kind
}

// nodeConfig are the prompt-related members of a node's config.
type nodeConfig struct {
	System     json.RawMessage `json:"systemPromptRef"`
	User       json.RawMessage `json:"userPromptRef"`
	Additional json.RawMessage `json:"additionalPromptRefs"`
	PromptID   json.RawMessage `json:"promptId"`
	// Texts of the node itself, which conflict with templates.
	SystemText json.RawMessage `json:"system"`
	UserText   json.RawMessage `json:"prompt"`
}

// Plan returns the templates that a node's config names, in the event's order: system, user,
// others. pinned are the references of an earlier composition, which keep their versions. No parts
// means that the node names none.
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

// readSlots reads the references of a config. An invalid config has none: the node fails on it
// anyway. An id without a scheme is a reference only if there are templates, because other hosts
// use similar names for their own prompts.
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

// mayRefer quickly rules out configs without reference members, which is the usual case: each
// config is read before every call of its node. Only an escape could hide a name.
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

// isRef reports whether a promptId refers to a template. Other texts belong to other hosts.
func isRef(raw json.RawMessage) bool {
	var id string
	return len(raw) > 0 && (raw[0] == '{' || json.Unmarshal(raw, &id) == nil && strings.HasPrefix(id, refScheme))
}

// HasReference reports whether a node's config refers to a template in a form that every host reads: each
// reference but a bare promptId.
func HasReference(config json.RawMessage) bool {
	slots, found := readSlots(config, false)
	return len(slots)+len(found) > 0
}

// conflicts returns the texts that two members of the config both set.
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

// hasText reports whether a member is a non-empty text.
func hasText(raw json.RawMessage) bool { return !isMissing(raw) && string(raw) != `""` }

// checkOverrides rejects values for variables that the template does not have.
func (t *Template) checkOverrides(s slot) (found []Problem) {
	slots := t.slots()
	for _, name := range slices.Sorted(maps.Keys(s.ref.Overrides)) {
		at := s.path + "/variableOverrides/" + jsonpointer.Escape(name)
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
