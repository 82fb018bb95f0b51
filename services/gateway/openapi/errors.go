package openapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// commonDetails are the details of codes that have no own ones.
const commonDetails = "ErrorDetails"

// errorsByStatus are the codes of an operation by their HTTP status.
type errorsByStatus map[int][]fault.Code

func (e errorsByStatus) add(codes ...fault.Code) {
	for _, c := range codes {
		e.addAs(fault.Lookup(c).HTTP, c)
	}
}

func (e errorsByStatus) addAs(status int, c fault.Code) {
	if !slices.Contains(e[status], c) {
		e[status] = append(e[status], c)
	}
}

// errorsOf returns the errors of an operation.
func (b *builder) errorsOf(o *operation) errorsByStatus {
	out := errorsByStatus{}
	scopes, _ := auth.ScopesOf(o.method)
	if len(scopes) > 0 {
		out.add(fault.Unauthenticated, fault.KeyExpired, fault.KeyRevoked, fault.Forbidden)
	}
	if len(scopes) > 0 || o.token {
		out.add(fault.ValidationError)
	}
	if o.limited {
		out.add(fault.RateLimited, fault.ServiceUnavailable, fault.InternalError)
	}
	if o.body {
		out.add(fault.PayloadTooLarge)
	}
	if o.keyed {
		out.add(fault.IdempotencyKeyMismatch, fault.IdempotencyInFlight)
	}
	if o.ofRun {
		out.add(fault.RunNotFound, fault.LogDamaged, fault.EngineVersionMismatch)
	}
	for _, text := range b.shapes.codes(o.id) {
		name, status, other := strings.Cut(text, "/")
		c := fault.Code(name)
		if !fault.Known(c) || fault.Lookup(c).HTTP == 0 {
			b.fail("%s: %s is no code of an answer", o.id, c)
		}
		if n, err := strconv.Atoi(status); err == nil && other {
			out.addAs(n, c)
			continue
		}
		out.add(c)
	}
	for status := range out {
		slices.Sort(out[status])
		for _, c := range out[status] {
			b.errors.addAs(status, c)
		}
	}
	return out
}

// errorResponse describes the answer of a status. Its schema is the type of its code, or the union of all
// codes of the status, of which x-error-codes lists those of the operation.
func (b *builder) errorResponse(o *operation, status int, codes []fault.Code) object {
	schema := ref(errorName(codes[0]))
	if len(codes) > 1 {
		schema = ref(statusName(status))
	}
	names := make([]string, len(codes))
	for i, c := range codes {
		names[i] = string(c)
	}
	return object{
		"description":   strings.Join(names, ", ") + ".",
		"x-error-codes": names,
		"headers":       o.errorHeaders(status, codes),
		"content":       object{"application/json": object{"schema": schema}},
	}
}

func statusName(status int) string { return "Error" + strconv.Itoa(status) }

// errorName is the component of a code: run_not_found is RunNotFoundError.
func errorName(c fault.Code) string { return strings.TrimSuffix(camel(string(c)), "Error") + "Error" }

// answerCodes returns the codes of answers. Those of test seams are not described.
func answerCodes() (out []fault.Code) {
	for _, c := range fault.Codes() {
		if fault.Lookup(c).HTTP != 0 && c != fault.InvalidArgument {
			out = append(out, c)
		}
	}
	return out
}

// addErrors adds the type of each code, and their union.
func (b *builder) addErrors() {
	b.define(commonDetails, object{
		"type":       "object",
		"properties": object{"retryAfter": ref("RetryAfterSeconds")},
	})
	for c := range b.shapes.Details {
		if !slices.Contains(answerCodes(), fault.Code(c)) {
			b.fail("details of %s: it is no code of an answer", c)
		}
	}
	for _, c := range answerCodes() {
		required, details := []string{"error", "message"}, ref(commonDetails)
		if own, ok := b.shapes.Details[string(c)]; ok {
			if own["required"] != nil {
				required = append(required, "details")
			}
			own = maps.Clone(resolved(own).(object))
			own["type"] = "object"
			details = b.define(errorName(c)+"Details", own)
		}
		b.define(errorName(c), object{
			"description": fault.Lookup(c).Meaning,
			"type":        "object", "required": required, "additionalProperties": false,
			"properties": object{
				"error":   object{"type": "string", "enum": []string{string(c)}},
				"message": object{"type": "string", "description": "For people; programs switch on error."},
				"details": details,
			},
		})
	}
	b.defineErrorUnion("Error", answerCodes(), "The body of every answer that is not 2xx; `error` selects the variant. Later releases may add codes.")
}

// addStatusErrors adds the union of the codes of each status that operations have.
func (b *builder) addStatusErrors() {
	for status, codes := range b.errors {
		slices.Sort(codes)
		if len(codes) > 1 {
			b.defineErrorUnion(statusName(status), codes, "An answer of status "+strconv.Itoa(status)+" "+http.StatusText(status)+"; `error` selects the variant.")
		}
	}
}

func (b *builder) defineErrorUnion(name string, codes []fault.Code, text string) {
	refs, mapping := []object{}, object{}
	for _, c := range codes {
		to := ref(errorName(c))
		refs = append(refs, to)
		mapping[string(c)] = to["$ref"]
	}
	b.define(name, object{
		"description":   text,
		"oneOf":         refs,
		"discriminator": object{"propertyName": "error", "mapping": mapping},
	})
}
