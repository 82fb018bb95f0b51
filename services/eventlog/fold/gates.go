package fold

import (
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/view"
)

// passed returns the gates of an accepted document, with notes.
func passed(notes map[view.GateName]string) []view.Gate {
	out := make([]view.Gate, len(view.Gates))
	for i, g := range view.Gates {
		out[i] = view.Gate{Name: g, State: view.Passed, Note: notes[g]}
	}
	return out
}

// refused returns the gates of a rejected document: passed, refused, not reached.
func refused(at view.Gate) []view.Gate {
	out := passed(nil)
	n := slices.Index(view.Gates, at.Name)
	for i := n + 1; i < len(out); i++ {
		out[i].State = view.NotReached
	}
	at.State = view.Refused
	out[n] = at
	return out
}

// ofValue returns the gates of a value, which is checked against the node's schema only.
func ofValue(wrong *view.Gate) []view.Gate {
	out := passed(nil)
	for i, g := range view.Gates {
		switch {
		case g != "payload":
			out[i].State = view.NotApplicable
		case wrong != nil:
			out[i] = *wrong
			out[i].Name, out[i].State = g, view.Refused
		}
	}
	return out
}

// ruled matches a validation error of the host: a message, and the rule.
var ruled = regexp.MustCompile(`(?s)^(.*) \((/[^()]*)\)$`)

// required matches the host's message about a missing member.
var required = regexp.MustCompile(`^required member missing: (\S+)$`)

// problems splits the host's validation errors, which are separated by "; ". A message may contain
// the separator before the list of allowed values.
func problems(detail string) []view.Problem {
	if detail == "" {
		return nil
	}
	var parts []string
	for p := range strings.SplitSeq(detail, "; ") {
		if len(parts) > 0 && strings.HasPrefix(p, "allowed: ") {
			parts[len(parts)-1] += "; " + p
			continue
		}
		parts = append(parts, p)
	}
	out := make([]view.Problem, len(parts))
	for i, p := range parts {
		out[i].Message = p
		if m := ruled.FindStringSubmatch(p); m != nil {
			at := instance(m[2], m[1])
			out[i] = view.Problem{Message: m[1], SchemaPointer: m[2], InstancePointer: &at}
		}
	}
	return out
}

// instance returns the place in a payload that a schema rule applies to; * matches any element.
func instance(schemaPointer, message string) string {
	steps := strings.Split(schemaPointer, "/")[1:]
	at := ""
	for i := 0; i < len(steps); i++ {
		more := i+1 < len(steps)
		switch steps[i] {
		case "properties", "prefixItems":
			if more {
				at += "/" + steps[i+1]
			}
			i++
		case "items", "additionalProperties", "patternProperties":
			if more {
				at += "/*"
			}
		case "anyOf", "oneOf", "allOf", "$defs":
			i++
		}
	}
	if m := required.FindStringSubmatch(message); m != nil {
		at += "/" + m[1]
	}
	return at
}

// envelopeMembers are the members of a closed envelope, as the shape gate lists them.
const envelopeMembers = "allowed: correlationId, envelopeId, meta, nodeId, partial, payload, schemaVersion, type"

// misshapen are the beginnings of messages of the shape gate.
var misshapen = []string{
	"the object has two members of this name", "must be an ISO 8601", "it is a fragment of an envelope", "it is not a valid envelope",
}

// gateOf returns the gate that caused a retry. The event has the validator's message but no code;
// the message identifies the gate.
func gateOf(f *view.Failure) view.Gate {
	gate := func(name view.GateName, code fault.Code, reason string) view.Gate {
		return view.Gate{Name: name, Code: string(code), Reason: reason, Problems: problems(f.Detail)}
	}
	begins := func(p string) bool { return strings.HasPrefix(f.Detail, p) }
	switch kinds, ok := strings.CutPrefix(f.Detail, "its type is not one of "); {
	case ok:
		g := gate("kind", fault.UnknownEnvelopeKind, "this host does not advertise the kind")
		g.AcceptedKinds, g.Problems = strings.Split(kinds, ", "), nil
		return g
	case begins("schemaVersion is "):
		return gate("payload", fault.UnknownSchemaVersion, strings.TrimSuffix(f.Detail, " (/schemaVersions)"))
	case strings.Contains(f.Detail, envelopeMembers), slices.ContainsFunc(misshapen, begins):
		return gate("shape", fault.InvalidEnvelopeShape, "the document is not an AI envelope")
	case f.Reason == "type-mismatch":
		return gate("payload", fault.EnvelopeInvalid, "a value is of the wrong type")
	default:
		return gate("payload", fault.EnvelopeInvalid, "the payload does not satisfy the schema")
	}
}

// gates maps the codes of the pipeline to their gates.
var gates = map[fault.Code]view.GateName{
	fault.CapabilityRequired:        "shape",
	fault.InvalidEnvelopeShape:      "shape",
	fault.UnknownEnvelopeKind:       "kind",
	fault.UnknownSchemaVersion:      "payload",
	fault.EnvelopeInvalid:           "payload",
	fault.EnvelopeContractViolation: "contract",
	fault.CapBreached:               "limits",
	fault.UntrustedBlocksApproval:   "redaction",
	fault.EnvelopeCorrelationClash:  "dedup",
}

// refusalOf returns the gate behind the error of a node; false: none is.
func refusalOf(e *nodeError) (view.Gate, bool) {
	if e == nil {
		return view.Gate{}, false
	}
	name, ok := gates[fault.Code(e.Code)]
	if !ok {
		return view.Gate{}, false
	}
	g := view.Gate{Name: name, Code: e.Code, Reason: e.Message}
	if name == "contract" {
		g.AcceptedKinds, g.RefusedKind = e.Details.AcceptedTypes, e.Details.RefusedType
	}
	return g, true
}
