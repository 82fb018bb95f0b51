package openapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// withErrors adds an answer for every error status of an operation.
func withErrors(out object, method string) object {
	scopes, _ := auth.ScopesOf(method)
	for status := range errorCodes() {
		if len(scopes) > 0 || status != http.StatusUnauthorized && status != http.StatusForbidden {
			out[strconv.Itoa(status)] = errorRef(status)
		}
	}
	return out
}

func errorRef(status int) object {
	return object{"$ref": "#/components/responses/" + errorName(status)}
}

func errorName(status int) string { return "Error" + strconv.Itoa(status) }

// errorCodes returns the codes of errors by their HTTP status.
func errorCodes() map[int][]string {
	out := map[int][]string{}
	for _, c := range fault.Codes() {
		if status := fault.Lookup(c).HTTP; status != 0 && c != fault.InvalidArgument {
			out[status] = append(out[status], string(c))
		}
	}
	return out
}

// errorResponses describes the answer of each error status.
func errorResponses() object {
	out := object{}
	for status, codes := range errorCodes() {
		slices.Sort(codes)
		out[errorName(status)] = object{
			"description": strings.Join(codes, ", "),
			"content":     object{"application/json": object{"schema": ref("Error")}},
		}
	}
	return out
}

func errorSchema() object {
	codes := []string{}
	for _, c := range fault.Codes() {
		if fault.Lookup(c).HTTP != 0 {
			codes = append(codes, string(c))
		}
	}
	slices.Sort(codes)
	return object{
		"type": "object", "required": []string{"error", "message"}, "additionalProperties": false,
		"properties": object{
			"error":   object{"type": "string", "description": "one of " + strings.Join(codes, ", ")},
			"message": object{"type": "string"},
			"details": ref("JsonObject"),
		},
	}
}
