package projection

import (
	"encoding/json"
	"strconv"
)

// Lift converts a value of the schema to an answer under the projection, for examples in a prompt
// and for a model's earlier turns. Absent members become null if the projection requires them, in its order.
// Restore reverses it. Lift does not validate, but returns an *AnswerError for a value that the
// projection cannot express, such as one with members that a schema without additionalProperties
// does not name.
func (p *Projection) Lift(instance json.RawMessage) (json.RawMessage, error) {
	if err := sound(instance, maxAnswerDepth); err != nil {
		return nil, err
	}
	v := read(instance)
	if p.wrapped {
		v = &value{kind: objects, fields: []field{{wrapAs, v}}}
	}
	if p.root == nil {
		return v.append(nil), nil
	}
	out, err := p.root.lift(v)
	if err != nil {
		return nil, err
	}
	return out.append(nil), nil
}

// lift converts one value.
func (n *node) lift(v *value) (*value, *AnswerError) {
	n = n.end()
	if v.kind == nulls && n.takesNull() {
		return v, nil
	}
	if n.shape == shapeUnion {
		n = n.branchOf(v)
	}
	if n == nil || !n.source().has(v.kind) {
		return nil, &AnswerError{Reason: "the value is of a kind the schema does not take here"}
	}
	if n.plainly() {
		return v, nil
	}
	switch n.shape {
	case shapeText:
		return &value{kind: strs, plain: v.String()}, nil
	case shapeEntries:
		return n.liftEntries(v)
	case shapeArray:
		return n.liftArray(v)
	case shapeObject:
		return n.liftObject(v)
	default:
		return v, nil
	}
}

// branchOf returns the branch of a value of the schema.
func (n *node) branchOf(v *value) *node {
	if v.kind == objects && len(n.untagged) > 0 {
		return n.untaggedSource(v)
	}
	tagged, other := n.expand()
	for _, c := range append(tagged, other...) {
		leaf := c.end()
		if !leaf.source().has(v.kind) {
			continue
		}
		if leaf.shape != shapeObject || len(tagged) == 1 {
			return leaf
		}
		if tag := v.get(n.tag); tag != nil && n.byTag[tag.plain] == leaf {
			return leaf
		}
	}
	return nil
}

func (n *node) liftArray(v *value) (*value, *AnswerError) {
	out := &value{kind: arrays}
	for i, item := range v.items {
		as := n.items
		if i < len(n.prefix) {
			as = n.prefix[i]
		}
		if as == nil {
			return nil, (&AnswerError{Reason: "more items than the schema takes"}).under(strconv.Itoa(i))
		}
		lifted, err := as.lift(item)
		if err != nil {
			return nil, err.under(strconv.Itoa(i))
		}
		out.items = append(out.items, lifted)
	}
	return out, nil
}

func (n *node) liftEntries(v *value) (*value, *AnswerError) {
	out := &value{kind: arrays}
	for _, f := range v.fields {
		lifted, err := n.item.lift(f.value)
		if err != nil {
			return nil, err.under(f.name)
		}
		out.items = append(out.items, &value{kind: objects, fields: []field{
			{entryKey, &value{kind: strs, plain: f.name}}, {entryValue, lifted},
		}})
	}
	return out, nil
}

func (n *node) liftObject(v *value) (*value, *AnswerError) {
	out := &value{kind: objects}
	null := &value{kind: nulls, plain: "null"}
	for _, m := range n.members {
		have := v.get(m.name)
		switch {
		case have != nil:
			lifted, err := m.node.lift(have)
			if err != nil {
				return nil, err.under(m.name)
			}
			out.fields = append(out.fields, field{m.sent, lifted})
		case m.required:
			return nil, (&AnswerError{Reason: "a required member is missing"}).under(m.name)
		case m.left:
		default:
			out.fields = append(out.fields, field{m.sent, null})
		}
	}
	others := &value{kind: objects}
	for _, f := range v.fields {
		if _, named := n.byName[f.name]; !named {
			others.fields = append(others.fields, f)
		}
	}
	return n.liftOthers(out, others)
}

// liftOthers adds the member that holds the unnamed members.
func (n *node) liftOthers(out, others *value) (*value, *AnswerError) {
	if n.rest == nil {
		if len(others.fields) > 0 {
			return nil, (&AnswerError{Reason: "the schema does not name this member; name it, or set additionalProperties"}).under(others.fields[0].name)
		}
		return out, nil
	}
	rest := &value{kind: nulls, plain: "null"}
	if len(others.fields) == 0 && n.restLeft {
		return out, nil
	}
	if len(others.fields) > 0 {
		var err *AnswerError
		if rest, err = n.rest.lift(others); err != nil {
			return nil, err
		}
	}
	out.fields = append(out.fields, field{n.restAs, rest})
	return out, nil
}
