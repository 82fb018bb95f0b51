package model

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Forms of an answer: what the schema of the request describes.
const (
	// formAuto is envelopes for a model that is held to a schema, if its vendor takes the schema of a
	// turn, and payload otherwise.
	formAuto = "auto"
	// formPayload is the payload of the requested kind alone.
	formPayload = "payload"
	// formEnvelopes is a list of envelopes of all kinds that the node accepts.
	formEnvelopes = "envelopes"
)

// checkForm rejects a form that the node cannot have.
func (c config) checkForm() *wire.NodeError {
	switch c.Turn {
	case "", formAuto, formEnvelopes:
		return nil
	case formPayload:
		if c.EnvelopeType != "" {
			return nil
		}
		return node.Invalid("/config/turn: payload needs /config/envelopeType, the kind of the payload")
	}
	return node.Invalid("/config/turn: want %s, %s or %s", formAuto, formPayload, formEnvelopes)
}

// turnForm is the form of an answer that lists envelopes.
type turnForm struct {
	schema      json.RawMessage
	instruction string
	// reasons means that a payload has a member for reasoning.
	reasons bool
}

// turnForm returns the schema of a turn with the kinds that the node accepts: the requested one, those
// of its contract, and the universal ones that the host's limits allow. rendered offers rendering hints.
func (l *Loop) turnForm(
	ctx context.Context, kind string, contract *workflow.EnvelopeContract, limits Limits, rendered bool,
) (turnForm, error) {
	var names []string
	if kind != "" {
		names = append(names, kind)
	}
	if contract != nil {
		names = append(names, contract.Accepts...)
	}
	if limits.ClarificationRounds > 0 {
		names = append(names, wire.KindClarificationRequest)
	}
	if limits.SchemaRounds > 0 {
		names = append(names, wire.KindSchemaRequest)
	}
	names = append(names, wire.KindError)
	var kinds []projection.TurnKind
	seen := map[string]bool{}
	key := sha256.New()
	fmt.Fprintf(key, "%t ", rendered)
	for _, name := range names {
		if seen[name] || name == wire.KindSchemaResponse {
			continue
		}
		seen[name] = true
		k, ok, err := l.deps.Schemas.Kind(ctx, name)
		if err != nil {
			return turnForm{}, err
		}
		if ok { // the accept pipeline rejects a kind that the host does not advertise
			kinds = append(kinds, turnKind(k, rendered))
			fmt.Fprintf(key, "%s %d ", k.Name, len(k.Schema))
			key.Write(k.Schema)
		}
	}
	return l.turnForms.getOrCompile([sha256.Size]byte(key.Sum(nil)), func() (turnForm, int, error) {
		made := turnForm{
			schema: projection.Turn(kinds), instruction: turnInstruction(kind, kinds),
			reasons: slices.ContainsFunc(kinds, func(k projection.TurnKind) bool { return len(k.Without) == 0 && l.reasonings.hasReasoning(k.Schema) }),
		}
		if _, err := schema.Compile("turn", made.schema); err != nil { // a kind's schema has names that clash
			made = turnForm{}
		}
		return made, len(made.schema), nil
	})
}

// turnKind offers a universal kind without the members that only programs read: vendors limit the
// number of optional members.
func turnKind(k Kind, rendered bool) projection.TurnKind {
	if !wire.IsUniversal(k.Name) {
		return projection.TurnKind{Name: k.Name, Schema: k.Schema, Rendered: rendered}
	}
	return projection.TurnKind{
		Name:    k.Name,
		Schema:  k.Schema,
		Without: []string{"context", "contextType", "details", "reason", "reasoning"},
	}
}

// turnForms caches the forms of turns by the kinds in them.
type turnForms struct {
	cache[[sha256.Size]byte, turnForm]
}

// turnInstruction tells a model what it can answer.
func turnInstruction(kind string, kinds []projection.TurnKind) string {
	var b strings.Builder
	b.WriteString(`Answer with one JSON document: {"` + projection.TurnMember + `":[{"type":...,"payload":...}]}. `)
	if kind != "" {
		b.WriteString("Answer with one envelope of type " + kind + ".")
	} else {
		var own []string
		for _, k := range kinds {
			if !wire.IsUniversal(k.Name) {
				own = append(own, k.Name)
			}
		}
		b.WriteString("Answer with envelopes of type " + strings.Join(own, " or ") + ".")
	}
	for _, k := range kinds {
		switch k.Name {
		case wire.KindClarificationRequest:
			b.WriteString(" If a person must tell you more first, send " + k.Name + " alone.")
		case wire.KindSchemaRequest:
			b.WriteString(" To see the schema of another type first, send " + k.Name + " alone.")
		case wire.KindError:
			b.WriteString(" If it cannot be done, send " + k.Name + ".")
		}
	}
	return b.String()
}

// turnDocuments returns the envelopes that a document of the form envelopes lists. Models that are not held
// to the schema write one envelope without its list, or the list as JSON text.
func turnDocuments(d document) ([]document, bool) {
	members := strictjson.Object(d.raw)
	raw, ok := members[projection.TurnMember]
	if !ok {
		raw, ok = members["envelope"]
	}
	if !ok || len(members) != 1 {
		return nil, false
	}
	if text, isText := strictjson.String(raw); isText {
		raw = json.RawMessage(text)
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		if !isEnvelope(document{raw: raw}) {
			return nil, false
		}
		items = []json.RawMessage{raw}
	}
	out := make([]document, 0, len(items))
	for _, raw := range items {
		out = append(out, document{raw: raw, path: d.path, offset: d.offset})
	}
	return out, true
}
