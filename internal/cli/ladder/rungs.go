package ladder

import (
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
)

// passed are all gates of an answer that was taken, with what each has to say.
func passed(notes map[Gate]string) []Rung {
	out := make([]Rung, len(Gates))
	for i, g := range Gates {
		out[i] = Rung{Gate: g, State: Passed, Note: notes[g]}
	}
	return out
}

// refused are the gates of one that was refused: passed before, not reached after.
func refused(at Rung) []Rung {
	out := passed(nil)
	n := slices.Index(Gates, at.Gate)
	for i := range out {
		if i > n {
			out[i].State = NotReached
		}
	}
	at.State = Refused
	out[n] = at
	return out
}

// ofValue are the gates of a value, which is held to the node's schema alone.
func ofValue(wrong *Rung) []Rung {
	out := passed(nil)
	for i, g := range Gates {
		switch {
		case g != "payload":
			out[i].State = NotApplicable
		case wrong != nil:
			out[i] = *wrong
			out[i].Gate, out[i].State = g, Refused
		}
	}
	return out
}

// ruled is a validator's finding as the host puts it: words, and the rule they are of.
var ruled = regexp.MustCompile(`(?s)^(.*) \((/[^()]*)\)$`)

// required is what the host says of a member that is missing.
var required = regexp.MustCompile(`^required member missing: (\S+)$`)

// problems takes the host's words apart: findings are divided by "; ", but for the one
// that goes on with what is allowed.
func problems(detail string) []Problem {
	if detail == "" {
		return nil
	}
	var parts []string
	for _, p := range strings.Split(detail, "; ") {
		if len(parts) > 0 && strings.HasPrefix(p, "allowed: ") {
			parts[len(parts)-1] += "; " + p
			continue
		}
		parts = append(parts, p)
	}
	out := make([]Problem, len(parts))
	for i, p := range parts {
		out[i].Message = p
		if m := ruled.FindStringSubmatch(p); m != nil {
			out[i] = Problem{Message: m[1], SchemaPointer: m[2], InstancePointer: instance(m[2], m[1])}
		}
	}
	return out
}

// instance is where in a payload a rule of its schema applies; * is any element.
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

// envelopeMembers are what a closed envelope may have, as the shape gate lists them.
const envelopeMembers = "allowed: correlationId, envelopeId, meta, nodeId, partial, payload, schemaVersion, type"

// misshapen are the beginnings of what only the shape gate says.
var misshapen = []string{
	"the object has two members of this name", "must be an ISO 8601",
	"it is a fragment of an envelope", "it is not a valid envelope",
}

// gateOf is the gate at which an answer failed that was asked for again. The event has
// the validator's words and no code: they tell which gate spoke.
func gateOf(f Failure) Rung {
	if kinds, ok := strings.CutPrefix(f.Detail, "its type is not one of "); ok {
		return Rung{
			Gate:          "kind",
			Code:          fault.UnknownEnvelopeKind,
			Reason:        "this host does not advertise the kind",
			AcceptedKinds: strings.Split(kinds, ", "),
		}
	}
	if strings.HasPrefix(f.Detail, "schemaVersion is ") {
		return Rung{
			Gate:     "payload",
			Code:     fault.UnknownSchemaVersion,
			Reason:   strings.TrimSuffix(f.Detail, " (/schemaVersions)"),
			Problems: problems(f.Detail),
		}
	}
	if strings.Contains(f.Detail, envelopeMembers) || slices.ContainsFunc(misshapen, func(p string) bool { return strings.HasPrefix(f.Detail, p) }) {
		return Rung{
			Gate:     "shape",
			Code:     fault.InvalidEnvelopeShape,
			Reason:   "the document is not an AI envelope",
			Problems: problems(f.Detail),
		}
	}
	reason := "the payload does not satisfy the schema"
	if f.Reason == "type-mismatch" {
		reason = "a value is of the wrong type"
	}
	return Rung{Gate: "payload", Code: fault.EnvelopeInvalid, Reason: reason, Problems: problems(f.Detail)}
}

// gates are those that give the codes of the pipeline.
var gates = map[fault.Code]Gate{
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

// refusalOf is the gate behind the error of a node; false: no gate is.
func refusalOf(e *Error) (Rung, bool) {
	g, ok := gates[e.Code]
	if !ok {
		return Rung{}, false
	}
	r := Rung{Gate: g, Code: e.Code, Reason: e.Message}
	if g == "contract" {
		r.AcceptedKinds = texts(e.Details["acceptedTypes"])
		r.RefusedKind, _ = e.Details["refusedType"].(string)
	}
	return r, true
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
