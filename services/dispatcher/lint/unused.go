package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/node"
)

// checkUnused warns about variables and channels whose name no node, edge and setting has. Nothing is
// reported where names are not in the document: with templates, core.start, agents, and nodes of packs.
func (l *linter) checkUnused() {
	if l.unsure {
		return
	}
	for i := range l.def.Nodes {
		n := &l.def.Nodes[i]
		t := l.Types[n.TypeID]
		config := t.Configure(n.Config)
		reference := slices.ContainsFunc([]string{"systemPromptRef", "userPromptRef", "additionalPromptRefs", "promptId"}, func(name string) bool { return isSet(config, name) })
		if t.Made != nil || reference || n.Agent != nil || t.Executes() == node.TypeStart {
			return
		}
	}
	members := strictjson.Object(l.def.Raw)
	var used []byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "variables", "channels", "metadata", "id", "name", "description", "configurableSchema", "groups":
		default:
			used = append(used, members[name]...)
		}
	}
	if bytes.Contains(used, []byte(`variables[`)) || bytes.Contains(used, []byte(`variables,`)) || bytes.Contains(used, []byte(`variables.map`)) {
		return
	}
	for i, v := range l.def.Variables {
		if v.Name != inputDelay && !mentions(used, v.Name) {
			l.warn(fmt.Sprintf("/variables/%d", i), RuleNoEffect, "nothing uses the variable %s; remove it, or use {{%s}} or variables.%s", v.Name, v.Name, v.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.def.Channels)) {
		if l.def.Channels[name].Reducer != "message" && name != "messages" && !mentions(used, name) { // models use those
			l.warn("/channels/"+jsonpointer.Escape(name), RuleNoEffect, "nothing writes to the channel %s or reads it; remove it, or add a node of type core.channelWrite", name)
		}
	}
}

// mentions reports whether a document has a name, also as a part of another one.
func mentions(doc []byte, name string) bool {
	quoted, err := json.Marshal(name)
	return err != nil || bytes.Contains(doc, quoted[1:len(quoted)-1])
}

// readMember reads a config into v, as far as possible: its schema has been checked.
func readMember[T any](config json.RawMessage, v *T) *T {
	_ = strictjson.Read(config, v)
	return v
}

// textMember returns a text of a config; empty if there is none.
func textMember(config json.RawMessage, name string) string {
	text, _ := strictjson.String(strictjson.Object(config)[name])
	return text
}
