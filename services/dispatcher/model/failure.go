package model

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// failure says why an answer was not taken, and what the next attempt gets.
type failure struct {
	reason string
	// code is the node's error code when no attempt is left.
	code fault.Code
	// detail is validator output: never text of the model.
	detail string
}

// correction is the fragment a failed attempt adds to the next one: the
// validation summary in the host's words. A truncated answer gets none, it
// needs room and not advice (OpenWOP envelope contract §14.2).
func (f failure) correction() string {
	if f.reason == reasonTruncation || f.detail == "" {
		return ""
	}
	return "Your previous answer was not accepted: " + f.detail +
		". Answer again with one JSON document that satisfies the schema, and nothing else."
}

// classify applies the part of the truth table that needs no validation:
// refusal wins over everything, truncation over any content.
func classify(res provider.Result) (f failure, refused, failed bool) {
	switch {
	case res.Stop == provider.StopRefused || res.RefusalText != "":
		return failure{}, true, true
	case res.Stop == provider.StopTruncated:
		return truncation(), false, true
	default:
		return failure{}, false, false
	}
}

func truncation() failure {
	return failure{reason: reasonTruncation, code: fault.EnvelopeTruncationTerminal}
}

// contentFailure is the failure of an answer without an acceptable document. A
// stop the host cannot place decides only then (OpenWOP envelope contract §14.1).
func contentFailure(res provider.Result, f failure) failure {
	switch res.Stop {
	case provider.StopSequence:
		return truncation()
	case provider.StopUnknown:
		f.reason = reasonUnknown
	}
	return f
}

func parseFailure() failure {
	return failure{reason: reasonParse, code: fault.EnvelopeInvalid, detail: "it holds no JSON document"}
}

func fragmentFailure() failure {
	return failure{reason: reasonSchema, code: fault.EnvelopeInvalid, detail: "it is a fragment of an envelope, not a whole one"}
}

// maxViolations bounds what a correction lists.
const maxViolations = 8

// schemaFailure puts violations into words. Paths and messages come from the
// schema; names that only the model's answer has are left out.
func schemaFailure(violations []schema.Violation) failure {
	var parts []string
	for _, v := range violations[:min(len(violations), maxViolations)] {
		parts = append(parts, violationText(v.Message, v.SchemaPath))
	}
	return failure{reason: reasonSchema, code: fault.EnvelopeInvalid, detail: strings.Join(parts, "; ")}
}

// outcomeFailure is the failure that an outcome of the pipeline stands for; ok
// is false for one that is not retried.
func outcomeFailure(o Outcome) (failure, bool) {
	code, _, _ := strings.Cut(o.Reason, ":")
	f := failure{reason: reasonSchema, code: fault.Code(strings.TrimSpace(code)), detail: outcomeDetail(o)}
	switch f.code {
	case fault.UnknownEnvelopeKind, fault.UnknownSchemaVersion:
		f.reason = reasonTypeDrift
		return f, true
	case fault.EnvelopeInvalid, fault.InvalidEnvelopeShape:
		return f, true
	default:
		return f, false
	}
}

func outcomeDetail(o Outcome) string {
	var parts []string
	for _, raw := range o.Details[:min(len(o.Details), maxViolations)] {
		var d struct{ Message, SchemaPath string }
		if json.Unmarshal(raw, &d) == nil && d.Message != "" {
			parts = append(parts, violationText(d.Message, d.SchemaPath))
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	if len(o.AllowedKinds) > 0 {
		return "its type is not one of " + strings.Join(o.AllowedKinds, ", ")
	}
	return "it is not a valid envelope"
}

// violationText puts a violation into words: what would be right, and the rule's place if one
// of the schema's is broken.
func violationText(message, schemaPath string) string {
	if schemaPath == "" {
		return message
	}
	return message + " (" + schemaPath + ")"
}
