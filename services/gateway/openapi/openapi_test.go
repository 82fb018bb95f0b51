package openapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/schemas"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/openapi"
	"waybill.dev/waybill/services/gateway/rest"
)

type object = map[string]any

func described(t *testing.T) object {
	t.Helper()
	b, err := openapi.Document("")
	require.NoError(t, err)
	var doc object
	require.NoError(t, json.Unmarshal(b, &doc))
	return doc
}

// operations calls visit for every operation.
func operations(t *testing.T, doc object, visit func(path, verb string, op object)) {
	t.Helper()
	for path, item := range doc["paths"].(object) {
		for verb, op := range item.(object) {
			visit(path, verb, op.(object))
		}
	}
}

func TestDocument_IsOpenAPI31(t *testing.T) {
	t.Parallel()
	doc := described(t)
	require.Regexp(t, `^3\.[1-9]`, doc["openapi"])
	info := doc["info"].(object)
	require.NotEmpty(t, info["title"])
	require.NotEmpty(t, info["version"])
}

func TestDocument_IsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	a, err := openapi.Document("")
	require.NoError(t, err)
	b, err := openapi.Document("")
	require.NoError(t, err)
	require.Equal(t, string(a), string(b))
}

func TestDocument_ResolvesEveryReference(t *testing.T) {
	t.Parallel()
	doc := described(t)
	n := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				n++
				require.True(t, strings.HasPrefix(ref, "#/"), ref)
				var at any = doc
				for part := range strings.SplitSeq(ref[2:], "/") {
					at = at.(object)[part]
				}
				require.NotEmpty(t, at, ref)
			}
			for _, m := range v {
				walk(m)
			}
		case []any:
			for _, m := range v {
				walk(m)
			}
		}
	}
	walk(doc)
	require.Positive(t, n)
}

func TestDocument_HasOneOperationPerRoute(t *testing.T) {
	t.Parallel()
	doc := described(t)
	ids := map[string]bool{}
	operations(t, doc, func(path, verb string, op object) {
		id, ok := op["operationId"].(string)
		require.True(t, ok, path)
		require.False(t, ids[id], "%s twice", id)
		ids[id] = true
		require.NotContains(t, path, "_", "parameters are spelled as the API's JSON")
		require.NotEmpty(t, verb)
		require.Regexp(t, `^[A-Z][a-z]+( [a-z]+)+$`, op["summary"], path)
		require.Regexp(t, `^[A-Z].*\.$`, op["description"], "%s %s", verb, path)
		for status, r := range op["responses"].(object) {
			require.Regexp(t, `\S`, r.(object)["description"], "%s %s %s", verb, path, status)
			require.Contains(t, r.(object), "headers", "%s %s %s", verb, path, status)
		}
		tags, ok := op["tags"].([]any)
		require.True(t, ok, path)
		require.Len(t, tags, 1, path)
		require.True(t, slices.ContainsFunc(doc["tags"].([]any), func(tag any) bool {
			return tag.(object)["name"] == tags[0] && tag.(object)["description"] != ""
		}), path)
	})
	require.Len(t, ids, len(rest.Routes)+len(rest.Others)+2, "and the streams")
	require.True(t, ids["watchRuns"])
	require.True(t, ids["streamRunEvents"])
}

var braces = regexp.MustCompile(`\{([^}]+)\}`)

func TestDocument_DeclaresEveryPathParameter(t *testing.T) {
	t.Parallel()
	operations(t, described(t), func(path, verb string, op object) {
		var want, got []string
		for _, m := range braces.FindAllStringSubmatch(path, -1) {
			want = append(want, m[1])
		}
		seen := map[string]bool{}
		params, _ := op["parameters"].([]any)
		for _, p := range params {
			param := p.(object)
			name := param["in"].(string) + " " + param["name"].(string)
			require.False(t, seen[name], "%s %s: %s twice", verb, path, name)
			seen[name] = true
			require.NotNil(t, param["schema"])
			require.Regexp(t, `\S`, param["description"], "%s %s: %s", verb, path, name)
			if param["in"] == "path" {
				require.Equal(t, true, param["required"])
				got = append(got, param["name"].(string))
			}
		}
		require.ElementsMatch(t, want, got, "%s %s", verb, path)
	})
}

func TestDocument_HasScopesBodiesAndErrors(t *testing.T) {
	t.Parallel()
	doc := described(t)
	for _, r := range rest.Routes {
		path := strings.NewReplacer("{run_id}", "{runId}", "{workflow_id}", "{workflowId}", "{node_id}", "{nodeId}", "{webhook_id}", "{webhookId}", "{view_id}", "{viewId}").Replace(r.Path)
		op := doc["paths"].(object)[path].(object)[strings.ToLower(r.HTTP)].(object)
		responses := op["responses"].(object)
		scopes, _ := auth.ScopesOf(r.Method)
		security := op["security"].([]any)
		if len(scopes) == 0 {
			require.Empty(t, security, path)
			require.NotContains(t, responses, "401", path)
		} else {
			want := make([]any, 0, len(scopes))
			for _, s := range scopes {
				want = append(want, string(s))
			}
			require.Equal(t, want, security[0].(object)["apiKey"], path)
			require.Contains(t, responses, "401")
			require.Contains(t, responses, "403")
		}
		require.Equal(t, r.Body != nil, op["requestBody"] != nil, path)
		if r.Body != nil {
			require.Equal(t, !r.BodyOptional, op["requestBody"].(object)["required"], path)
		}
		for _, status := range []int{http.StatusOK, http.StatusCreated} {
			want := status == r.Success || status == r.Also
			require.Equal(t, want, responses[strconv.Itoa(status)] != nil, "%s %d", path, status)
		}
		require.Contains(t, responses, "503")
	}
}

func TestDocument_ErrorsAreTheClosedEnvelope(t *testing.T) {
	t.Parallel()
	all := described(t)["components"].(object)["schemas"].(object)
	union := all["Error"].(object)["discriminator"].(object)
	require.Equal(t, "error", union["propertyName"])
	codes := 0
	for _, code := range fault.Codes() {
		if fault.Lookup(code).HTTP == 0 || code == fault.InvalidArgument {
			require.NotContains(t, union["mapping"], string(code))
			continue
		}
		codes++
		name := union["mapping"].(object)[string(code)].(string)
		e := all[name[strings.LastIndexByte(name, '/')+1:]].(object)
		require.Equal(t, false, e["additionalProperties"], code)
		require.Subset(t, e["required"], []any{"error", "message"}, code)
		require.Len(t, e["properties"], 3, code)
		require.Equal(t, []any{string(code)}, e["properties"].(object)["error"].(object)["enum"])
	}
	require.Len(t, union["mapping"], codes)
}

func TestDocument_LeavesPathMembersOutOfBodies(t *testing.T) {
	t.Parallel()
	op := described(t)["paths"].(object)["/v1/runs/{runId}/cancel"].(object)["post"].(object)
	schema := op["requestBody"].(object)["content"].(object)["application/json"].(object)["schema"].(object)
	require.NotContains(t, schema["properties"], "runId")
	require.Contains(t, schema["properties"], "reason")
}

func TestHandler_ServesTheDocument(t *testing.T) {
	t.Parallel()
	h := openapi.Handler("")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/openapi.json", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"))
	require.True(t, json.Valid(w.Body.Bytes()))
}

// The document of a run's view is described member by member, as its Go type renders it.
func TestDocument_DescribesTheViewOfARun(t *testing.T) {
	t.Parallel()
	doc := described(t)
	schemas := doc["components"].(object)["schemas"].(object)
	op := doc["paths"].(object)["/v1/runs/{runId}:view"].(object)["get"].(object)
	content := op["responses"].(object)["200"].(object)["content"].(object)
	require.Equal(t, object{"$ref": "#/components/schemas/ViewRun"}, content["application/json"].(object)["schema"])

	run := schemas["ViewRun"].(object)
	require.ElementsMatch(t, []any{"runId", "createdAt", "sequence", "answers", "timeline", "cost"}, run["required"])
	call := schemas["ViewCostCall"].(object)
	require.ElementsMatch(t, []any{"sequence", "attempt", "retry"}, call["required"], "an unknown value is absent")
	require.Equal(t, object{"type": "integer"}, call["properties"].(object)["inputTokens"], "of any size")
	require.Equal(t, object{"type": "integer", "format": "int64"}, call["properties"].(object)["sequence"])
	require.Equal(t, object{"type": "number"}, call["properties"].(object)["cost"])
	require.Contains(t, schemas["ViewInsufficient"].(object)["properties"], "model")
	state := schemas["ViewGate"].(object)["properties"].(object)["state"]
	require.Equal(t, object{"type": "string", "enum": []any{"passed", "refused", "not-reached", "not-applicable"}}, state)
}

// The definition that clients read and write has the members of the schema for editors.
func TestDocument_HasTheMembersOfWorkflows(t *testing.T) {
	t.Parallel()
	ours := described(t)["components"].(object)["schemas"].(object)
	text, err := schemas.FS.ReadFile("workflow.schema.json")
	require.NoError(t, err)
	var editors object
	require.NoError(t, json.Unmarshal(text, &editors))
	defs := editors["$defs"].(object)
	for name, of := range map[string]any{
		"WorkflowDefinition": editors,
		"WorkflowNode":       defs["node"],
		"WorkflowEdge":       defs["edge"],
		"WorkflowTrigger":    defs["trigger"],
		"WorkflowVariable":   defs["variable"],
		"WorkflowChannel":    defs["channel"],
	} {
		want, got := of.(object)["properties"].(object), ours[name].(object)["properties"].(object)
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), name)
		for member, s := range want {
			if values, ok := enumOf(s); ok {
				require.ElementsMatch(t, values, got[member].(object)["enum"], "%s.%s", name, member)
			}
		}
	}
}

// enumOf returns the values of a member whose schema lists them and nothing else.
func enumOf(s any) (values []any, ok bool) {
	o, ok := s.(object)
	if !ok || o["anyOf"] != nil {
		return nil, false
	}
	values, ok = o["enum"].([]any)
	return values, ok
}

// The variants of interrupts are the kinds of this host.
func TestDocument_HasEveryKindOfInterrupt(t *testing.T) {
	t.Parallel()
	all := described(t)["components"].(object)["schemas"].(object)
	for _, union := range []string{"InterruptRequest", "InspectedInterrupt", "RequestedInterrupt"} {
		var got []interrupt.Kind
		for kind := range all[union].(object)["discriminator"].(object)["mapping"].(object) {
			got = append(got, interrupt.Kind(kind))
		}
		require.ElementsMatch(t, interrupt.Kinds(), got, union)
	}
}

// Generators create no type for an object without members unless it is declared open.
func TestDocument_TypesEveryObject(t *testing.T) {
	t.Parallel()
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case object:
			if v["type"] == "object" && v["properties"] == nil {
				require.NotNil(t, v["additionalProperties"], path)
			}
			if schema, ok := v["schema"].(object); ok {
				require.NotEmpty(t, schema, path)
			}
			for name, m := range v {
				if name != "example" {
					walk(path+"/"+name, m)
				}
			}
		case []any:
			for i, m := range v {
				walk(path+"/"+strconv.Itoa(i), m)
			}
		}
	}
	walk("", described(t))
}
