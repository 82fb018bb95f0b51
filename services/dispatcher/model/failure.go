package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// failure is why an answer was rejected. It determines the next attempt.
type failure struct {
	reason string
	// code is the node's error code if no attempt is left.
	code fault.Code
	// detail is validator output, never text of the model.
	detail string
	// atCeiling means that the answer was truncated with the model's largest budget.
	atCeiling bool
}

// correction returns the message that a failed attempt adds to the next one: the host's summary of
// the violations. A truncated answer gets none: it needs a larger budget (OpenWOP envelope contract
// §14.2). isText means that the node asked for text.
func (f failure) correction(isText bool) string {
	if f.reason == reasonTruncation || f.detail == "" {
		return ""
	}
	text := "Your previous answer was not accepted: " + f.detail
	if isText {
		return text + ". Answer again with text alone."
	}
	return text + ". Answer again with one JSON document that satisfies the schema, and nothing else."
}

// classify applies the rows of the truth table that need no validation. A refusal wins over
// everything, a truncation over any content.
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

// contentFailure returns the failure of an answer without an acceptable document. An unknown stop
// reason matters only here (OpenWOP envelope contract §14.1).
func contentFailure(res provider.Result, f failure) failure {
	switch res.Stop {
	case provider.StopSequence:
		return truncation()
	case provider.StopUnknown:
		f.reason = reasonUnknown
	}
	return f
}

// parseFailure describes an answer without a document: the place of the first error of what is almost
// JSON, and none of the text.
func parseFailure(text string, x extraction) failure {
	f := failure{reason: reasonParse, code: fault.EnvelopeInvalid}
	switch {
	case x.interim:
		f.detail = waitsForTool
	case x.broken >= 0:
		f.detail = syntaxProblem(text, x.broken)
	case x.repeats:
		f.detail = "it repeats a document of the prompt, without an answer of its own"
	case len(x.documents) > 0:
		f.detail = "its JSON document is not an envelope with type and payload"
	case x.doubted:
		f.detail = "it takes its answer back in words; write the answer that counts, alone"
	case x.rejected:
		f.detail = "it says of its JSON that it is an example, a draft or a quotation, and not the answer"
	case x.announced:
		f.detail = "it ends where its answer was to begin"
	case x.thought:
		f.detail = "it ends after its thinking, without an answer"
	case strings.TrimSpace(text) == "":
		f.detail = "it is empty"
	default:
		f.detail = "it is text, not a JSON document"
	}
	return f
}

// syntaxProblem describes the first syntax error of the document at start.
func syntaxProblem(text string, start int) string {
	doc := []byte(text[start:])
	wrong, ok := errors.AsType[*strictjson.Error](strictjson.Check(doc, unlimited(doc)))
	if !ok {
		return "its JSON document is not complete"
	}
	at := wrong.Offset
	before := bytes.TrimRight(doc[:at], " \t\r\n")
	if at < len(doc) && (doc[at] == '}' || doc[at] == ']') && bytes.HasSuffix(before, []byte(",")) {
		return fmt.Sprintf("its JSON has a trailing comma at byte %d", start+len(before)-1)
	}
	return fmt.Sprintf("its JSON is broken at byte %d: %s", start+at, wrong.Reason)
}

// waitsForTool is the detail of an answer that waits for the result of a tool that no host calls.
const waitsForTool = "it calls a tool that it was not offered, and what it says before that is not its answer"

// interimFailure describes an answer whose server reports such a call.
func interimFailure() failure {
	return failure{
		reason: reasonUnknown,
		code:   fault.EnvelopeInvalid,
		detail: waitsForTool,
	}
}

// driftFailure describes an answer of a kind that the node did not ask for.
func driftFailure(kind, requested string) failure {
	return failure{
		reason: reasonTypeDrift,
		code:   fault.EnvelopeInvalid,
		detail: fmt.Sprintf("it is an envelope of type %s; want %s", kind, requested),
	}
}

// discardedFailure describes an answer of which nothing is left, because the node's contract discarded all
// its envelopes.
func discardedFailure(requested string) failure {
	return failure{
		reason: reasonTypeDrift,
		code:   fault.EnvelopeInvalid,
		detail: "the node's contract discards all its envelopes; want " + requested,
	}
}

func fragmentFailure() failure {
	return failure{
		reason: reasonSchema,
		code:   fault.EnvelopeInvalid,
		detail: "it is a fragment of an envelope, not a whole one",
	}
}

// maxViolations limits the violations listed in a correction.
const maxViolations = 8

// schemaFailure describes violations. Paths and messages come from the schema; names that occur
// only in the model's answer are left out.
func schemaFailure(violations []schema.Violation) failure {
	var parts []string
	for _, v := range violations[:min(len(violations), maxViolations)] {
		parts = append(parts, violationText(v.Message, v.SchemaPath))
	}
	return failure{reason: reasonSchema, code: fault.EnvelopeInvalid, detail: strings.Join(parts, "; ")}
}

// outcomeFailure converts an outcome of the accept pipeline to a failure. ok is false for outcomes
// that are not retried. accepted are the kinds that the node accepts.
func outcomeFailure(o Outcome, accepted []string) (failure, bool) {
	code, _, _ := strings.Cut(o.Reason, ":")
	f := failure{reason: reasonSchema, code: fault.Code(strings.TrimSpace(code)), detail: outcomeDetail(o)}
	switch f.code {
	case fault.UnknownEnvelopeKind:
		f.reason, f.detail = reasonTypeDrift, "its type is not one of "+strings.Join(accepted, ", ")
		return f, true
	case fault.UnknownSchemaVersion:
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
	return "it is not a valid envelope"
}

// violationText describes a violation: the requirement, and the path of the schema rule if one was
// violated.
func violationText(message, schemaPath string) string {
	if schemaPath == "" {
		return message
	}
	return message + " (" + schemaPath + ")"
}
