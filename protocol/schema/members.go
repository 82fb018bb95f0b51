package schema

import (
	"encoding/json"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
)

// members are the members of an object, in order.
type members struct{ list []member }

type member struct {
	name  string
	value json.RawMessage
}

// readMembers reads a valid object.
func readMembers(raw json.RawMessage) *members {
	o := &members{}
	strictjson.Each(raw, func(name, value []byte) {
		o.list = append(o.list, member{string(name), value})
	})
	return o
}

func (o *members) index(name string) int {
	return slices.IndexFunc(o.list, func(m member) bool { return m.name == name })
}

// get returns the value of a member; nil if there is none.
func (o *members) get(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o.list[i].value
	}
	return nil
}

func (o *members) hasAny(names ...string) bool {
	return slices.ContainsFunc(o.list, func(m member) bool { return slices.Contains(names, m.name) })
}

func (o *members) names() []string {
	names := make([]string, len(o.list))
	for i, m := range o.list {
		names[i] = m.name
	}
	return names
}

// set replaces the value of a member, or adds it at the end.
func (o *members) set(name string, value json.RawMessage) {
	if i := o.index(name); i >= 0 {
		o.list[i].value = value
		return
	}
	o.list = append(o.list, member{name, value})
}

func (o *members) drop(name string) {
	o.list = slices.DeleteFunc(o.list, func(m member) bool { return m.name == name })
}

// rename renames a member, and drops one that has the new name already.
func (o *members) rename(from, to string) {
	o.drop(to)
	if i := o.index(from); i >= 0 {
		o.list[i].name = to
	}
}

// eachSchema replaces each subschema. It gives the keyword that holds it, and its name or number if
// the keyword holds several.
func (o *members) eachSchema(replace func(value json.RawMessage, keyword string, name ...string) json.RawMessage) {
	for i := range o.list {
		m := &o.list[i]
		switch {
		case len(m.value) == 0:
		case slices.Contains(holdMap, m.name) && m.value[0] == '{':
			named := readMembers(m.value)
			for j, part := range named.list {
				named.list[j].value = replace(part.value, m.name, part.name)
			}
			m.value = named.render()
		case slices.Contains(holdList, m.name) && m.value[0] == '[':
			list := listOf(m.value)
			for j := range list {
				list[j] = replace(list[j], m.name, strconv.Itoa(j))
			}
			m.value = renderList(list)
		case slices.Contains(holdOne, m.name):
			m.value = replace(m.value, m.name)
		}
	}
}

func (o *members) render() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, strictjson.RenderPlain(m.name)...), ':'), m.value...)
	}
	return append(b, '}')
}

func renderList(items []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	return append(b, ']')
}
