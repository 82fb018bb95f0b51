package prompt

import (
	"encoding/json"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
)

// Further members of a node's config.
const (
	fewShotMember = "fewShotPromptRefs"
	agentMember   = "agentId"
)

// Slots returns the places that a config has references for, in the order system, user, schema-hint,
// few-shot.
func Slots(config json.RawMessage) ([]Slot, []Problem) {
	var c struct {
		System     json.RawMessage   `json:"systemPromptRef"`
		User       json.RawMessage   `json:"userPromptRef"`
		SchemaHint json.RawMessage   `json:"schemaHintPromptRef"`
		FewShot    []json.RawMessage `json:"fewShotPromptRefs"`
		AgentID    json.RawMessage   `json:"agentId"`
	}
	if len(config) > 0 && strictjson.Read(config, &c) != nil {
		return nil, []Problem{invalid("", "want systemPromptRef, userPromptRef, schemaHintPromptRef and fewShotPromptRefs, an array of references")}
	}
	var out []Slot
	add := func(k Kind, path string, raw json.RawMessage) {
		if !isMissing(raw) {
			out = append(out, Slot{kind: k, path: path, ref: raw, agent: c.AgentID})
		}
	}
	add(System, "/"+nodeMembers[System], c.System)
	add(User, "/"+nodeMembers[User], c.User)
	add(SchemaHint, "/"+nodeMembers[SchemaHint], c.SchemaHint)
	for i, raw := range c.FewShot {
		add(FewShot, "/"+fewShotMember+"/"+strconv.Itoa(i), raw)
	}
	return out, nil
}

// Slot is a place of a node's prompt that has a reference.
type Slot struct {
	kind Kind
	// path leads to the reference in the node's config.
	path       string
	ref, agent json.RawMessage
}

// Resolve resolves the reference. Of the layers, this host has that of the node only.
func (s Slot) Resolve(nodeID string) (Resolution, []Problem) {
	config := map[string]json.RawMessage{agentMember: s.agent}
	if s.kind == FewShot {
		config[fewShotMember] = slices.Concat(json.RawMessage("["), s.ref, json.RawMessage("]"))
	} else {
		config[nodeMembers[s.kind]] = s.ref
	}
	p := &layersParser{
		doc: layersDoc{Kind: s.kind, Node: &layersNode{NodeID: nodeID, Config: config}},
		out: Layers{NodeID: nodeID, Kind: s.kind},
	}
	p.readAll()
	return p.out.Resolve(), p.wrong
}

// Part returns the template of the reference, with its overrides.
func (s Slot) Part(l *Library) (Part, []Problem) {
	ref, wrong := ParseRef(s.ref)
	for i := range wrong {
		wrong[i].Path = s.path + wrong[i].Path
	}
	if wrong != nil {
		return Part{}, wrong
	}
	t, err := l.Find(ref)
	switch {
	case err != nil:
		return Part{}, []Problem{{s.path, err.Message, err.Code}}
	case t.Kind != s.kind:
		return Part{}, []Problem{invalid(s.path, "%s is a template of kind %s; this place takes one of kind %s", t.Ref(), t.Kind, s.kind)}
	}
	return Part{t, ref.Overrides}, t.checkOverrides(slot{path: s.path, ref: ref})
}
