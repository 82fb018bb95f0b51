package openapi

import (
	"net/http"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/idempotency"
)

// headers describes the headers of answers, by name. Those that every HTTP server sends, and traceparent,
// which tracing libraries handle, are left out.
var headers = map[string]object{
	"Cache-Control": {"description": "How long the answer may be used again.", "schema": object{"type": "string"}},
	"ETag":          {"description": "The version of the document, for If-None-Match.", "schema": object{"type": "string"}},
	"Capabilities-Etag": {
		"description": "ETag without its quotes.",
		"schema":      object{"type": "string"},
	},
	"openwop-Idempotent-Replay": {
		"description": "The answer is that of an earlier request with the same Idempotency-Key.",
		"schema":      object{"type": "string", "enum": []string{"true"}},
	},
	"RateLimit-Policy": {
		"description": `The limits that apply to the request: "key";q=50;w=1 is 50 in 1 second. Absent without limits.`,
		"schema":      object{"type": "string"},
	},
	"RateLimit": {
		"description": `What each limit has left, and the seconds until the whole burst is available again: "key";r=9;t=1.`,
		"schema":      object{"type": "string"},
	},
	"Retry-After": {
		"description": "Seconds after which the request may be repeated.",
		"schema":      object{"type": "integer", "minimum": 0},
	},
	"WWW-Authenticate":    {"description": "How to authenticate.", "schema": object{"type": "string"}},
	"Accept-Ranges":       {"description": "Parts can be requested.", "schema": object{"type": "string", "enum": []string{"bytes"}}},
	"Content-Range":       {"description": "The part that the answer has; of an error, the size of the whole.", "schema": object{"type": "string"}},
	"Content-Disposition": {"description": "The name of a file that is to be saved.", "schema": object{"type": "string"}},
	"Content-Security-Policy": {
		"description": "What a browser may do with the content.",
		"schema":      object{"type": "string"},
	},
	"Referrer-Policy": {"description": "The address is a credential.", "schema": object{"type": "string"}},
	"Access-Control-Allow-Origin": {
		"description": "Browsers of all origins may read it.",
		"schema":      object{"type": "string"},
	},
}

// named returns a set of headers by their components.
func named(names ...string) object {
	out := object{}
	for _, name := range names {
		out[name] = object{"$ref": "#/components/headers/" + name}
	}
	return out
}

// withoutNames returns the components of headers.
func withoutNames(all map[string]object) object {
	out := object{}
	for name, h := range all {
		out[name] = h
	}
	return out
}

// requiredHeaders adds headers that every answer has.
func requiredHeaders(out object, names ...string) object {
	for _, name := range names {
		own := object{"required": true}
		for k, v := range headers[name] {
			own[k] = v
		}
		out[name] = own
	}
	return out
}

// successHeaders are the headers of a success.
func (o *operation) successHeaders() object {
	out := object{}
	if o.limited {
		out = named("RateLimit", "RateLimit-Policy")
	}
	if o.keyed {
		out["openwop-Idempotent-Replay"] = named("openwop-Idempotent-Replay")["openwop-Idempotent-Replay"]
	}
	if o.conditional {
		requiredHeaders(out, "ETag")
	}
	return requiredHeaders(out, append([]string{"Cache-Control"}, o.headers...)...)
}

// errorHeaders are the headers of an error.
func (o *operation) errorHeaders(status int, codes []fault.Code) object {
	out := object{}
	if o.limited {
		out = named("RateLimit", "RateLimit-Policy")
	}
	if o.keyed && status < http.StatusInternalServerError {
		out["openwop-Idempotent-Replay"] = named("openwop-Idempotent-Replay")["openwop-Idempotent-Replay"]
	}
	retries := []fault.Code{fault.RateLimited, fault.IdempotencyInFlight, fault.RunAlreadyActive}
	switch {
	case status == http.StatusUnauthorized:
		requiredHeaders(out, "WWW-Authenticate")
	case status == http.StatusRequestedRangeNotSatisfiable:
		out["Content-Range"] = named("Content-Range")["Content-Range"]
	case status == http.StatusTooManyRequests:
		requiredHeaders(out, "Retry-After")
	case status == http.StatusServiceUnavailable, slices.ContainsFunc(codes, func(c fault.Code) bool { return slices.Contains(retries, c) }):
		out["Retry-After"] = named("Retry-After")["Retry-After"]
	}
	return requiredHeaders(out, "Cache-Control")
}

// The headers of requests.
var (
	keyParameter = object{
		"name": "Idempotency-Key", "in": "header",
		"description": "Identifies the request: a repetition gets the first answer, for a day.",
		"schema":      object{"type": "string", "minLength": 1, "maxLength": idempotency.MaxKeyLength, "pattern": "^[!-~]+$"},
	}
	conditionParameter = object{
		"name": "If-None-Match", "in": "header",
		"description": "ETags that the caller has: if one is current, the answer is 304 without a body.",
		"schema":      object{"type": "string"},
	}
	dedupParameter = object{
		"name": "X-Dedup", "in": "header",
		"description": "enforce: at most one active run with the same scopeId.",
		"schema":      object{"type": "string", "enum": []string{"enforce"}},
	}
	interruptParameter = object{
		"name": "Waybill-Interrupt-Id", "in": "header",
		"description": "The interruptId of the question that is answered: if the node asks another one by then, " +
			"the answer is 409 interrupt_already_resolved.",
		"schema": object{"type": "string", "minLength": 1, "maxLength": idempotency.MaxKeyLength, "pattern": "^[ -~]+$"},
	}
	engineParameter = object{
		"name": "X-Force-Engine-Version", "in": "header",
		"description": "The engine version of the run; only with a test key.",
		"schema":      object{"type": "integer", "minimum": 0},
	}
	resumeParameter = object{
		"name": "Last-Event-ID", "in": "header",
		"description": "Id of the last event that was received: the stream continues after it.",
		"schema":      object{"type": "string", "pattern": "^[0-9]+$"},
	}
	rangeParameter = object{
		"name": "Range", "in": "header",
		"description": "The part of the content to return, such as bytes=0-1023.",
		"schema":      object{"type": "string"},
	}
)
