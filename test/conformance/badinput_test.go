package conformance

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
}

func TestBadInput_IsRejectedWithReasonAndPlace(t *testing.T) {
	t.Parallel()
	tags := make([]string, 101)
	for i := range tags {
		tags[i] = strconv.Quote("t" + strconv.Itoa(i))
	}
	const invalid = "validation_error"
	for _, tc := range []struct {
		name, body string
		status     int
		code, path string // path must be in the answer
	}{
		{"nothing", ``, 400, invalid, ""},
		{"white space", "  \n", 400, invalid, ""},
		{"half a document", `{"workflowId":`, 400, invalid, ""},
		{"two documents", `{"workflowId":"noop"} {}`, 400, invalid, ""},
		{"a list", `[]`, 400, invalid, ""},
		{"null", `null`, 400, invalid, ""},
		{"a comment", `{"workflowId":"noop" /* x */}`, 400, invalid, ""},
		{"a byte order mark", "\xef\xbb\xbf" + `{"workflowId":"noop"}`, 400, invalid, ""},
		{"a member twice", `{"workflowId":"noop","workflowId":"noop"}`, 400, invalid, "/workflowId"},
		{"a member twice, deep down", `{"workflowId":"noop","inputs":{"a":{"b":1,"b":2}}}`, 400, invalid, "/inputs/a/b"},
		{"a member twice, spelled otherwise", `{"workflowId":"noop","inputs":{"a":1,"\u0061":2}}`, 400, invalid, "/inputs/a"},
		{"invalid UTF-8", "{\"workflowId\":\"noop\",\"inputs\":{\"a\":\"\xff\"}}", 400, invalid, ""},
		{"half a surrogate pair", `{"workflowId":"noop","inputs":{"a":"\ud800"}}`, 400, invalid, ""},
		{"too deep", `{"workflowId":"noop","inputs":` + nested(64) + `}`, 400, invalid, ""},
		{"very deep", `{"workflowId":"noop","inputs":` + nested(8000) + `}`, 400, invalid, ""},
		{"too large", `{"workflowId":"noop","inputs":{"a":"` + strings.Repeat("x", maxBody) + `"}}`, 413, "payload_too_large", ""},
		{"a member that is unknown", `{"workflowId":"noop","input":{}}`, 400, invalid, "/input"},
		{"a member spelled otherwise", `{"workflowid":"noop"}`, 400, invalid, "/workflowid"},
		{"a member of the proto spelling", `{"workflow_id":"noop"}`, 400, invalid, "/workflow_id"},
		{"no workflow", `{}`, 400, invalid, "/workflowId"},
		{"an empty workflow", `{"workflowId":""}`, 400, invalid, "/workflowId"},
		{"a number for a text", `{"workflowId":1}`, 400, invalid, "/workflowId"},
		{"null for a text", `{"workflowId":null}`, 400, invalid, "/workflowId"},
		{"inputs that are a list", `{"workflowId":"noop","inputs":[]}`, 400, invalid, "/inputs"},
		{"inputs that are null", `{"workflowId":"noop","inputs":null}`, 400, invalid, "/inputs"},
		{"a required input", `{"workflowId":"typed"}`, 400, invalid, "/inputs/text"},
		{"an input of another type", `{"workflowId":"typed","inputs":{"text":7}}`, 400, invalid, "/inputs/text"},
		{"an unknown workflow", `{"workflowId":"ghost"}`, 404, "workflow_not_found", ""},
		{"a workflow with a strange id", `{"workflowId":"*.>"}`, 404, "workflow_not_found", ""},
		{"another tenant", `{"workflowId":"noop","tenantId":"beta"}`, 403, "forbidden", "tenantId"},
		{"a node type that is not there", `{"workflowId":"gated"}`, 400, "capability_required", "core.dispatch"},
		{"101 tags", `{"workflowId":"noop","tags":[` + strings.Join(tags, ",") + `]}`, 400, invalid, "/tags"},
		{"an empty tag", `{"workflowId":"noop","tags":["a",""]}`, 400, invalid, "/tags/1"},
		{"an endless tag", `{"workflowId":"noop","tags":["` + strings.Repeat("ü", 257) + `"]}`, 400, invalid, "/tags/0"},
		{"a tag that is a number", `{"workflowId":"noop","tags":[1]}`, 400, invalid, "/tags/0"},
		{"deep metadata", `{"workflowId":"noop","metadata":` + nested(5) + `}`, 400, invalid, "/metadata"},
		{"large metadata", `{"workflowId":"noop","metadata":{"a":"` + strings.Repeat("x", 8192) + `"}}`, 400, invalid, "/metadata"},
		{"a callback inside", `{"workflowId":"noop","callbackUrl":"https://127.0.0.1/x"}`, 400, invalid, "/callbackUrl"},
		{"a callback in clear", `{"workflowId":"noop","callbackUrl":"http://example.org/x"}`, 400, invalid, "/callbackUrl"},
		{"a region", `{"workflowId":"noop","residency":{"region":"eu"}}`, 400, "residency_unavailable", "/residency"},
		{"an evaluation", `{"workflowId":"noop","mode":"eval"}`, 501, "capability_not_provided", ""},
		{"configurable null", `{"workflowId":"noop","configurable":null}`, 400, invalid, "/configurable"},
		{"recursionLimit 0", `{"workflowId":"noop","configurable":{"recursionLimit":0}}`, 400, invalid, "recursionLimit"},
		{"recursionLimit 1.5", `{"workflowId":"noop","configurable":{"recursionLimit":1.5}}`, 400, invalid, "recursionLimit"},
		{"recursionLimit as text", `{"workflowId":"noop","configurable":{"recursionLimit":"3"}}`, 400, invalid, "recursionLimit"},
		{"runTimeoutMs 0", `{"workflowId":"noop","configurable":{"runTimeoutMs":0}}`, 400, invalid, "runTimeoutMs"},
		{"temperature 2.1", `{"workflowId":"noop","configurable":{"temperature":2.1}}`, 400, invalid, "temperature"},
		{"maxTokens 0", `{"workflowId":"noop","configurable":{"maxTokens":0}}`, 400, invalid, "maxTokens"},
		{"promptOverrides of numbers", `{"workflowId":"noop","configurable":{"promptOverrides":{"a":1}}}`, 400, invalid, "promptOverrides"},
		{"an unknown provider", `{"workflowId":"noop","configurable":{"ai.provider":"ghost"}}`, 400, invalid, "ai.provider"},
		{"an unknown provider, nested", `{"workflowId":"noop","configurable":{"ai":{"provider":"ghost"}}}`, 400, invalid, "ai.provider"},
		{"a credential", `{"workflowId":"noop","configurable":{"ai.credentialRef":"r"}}`, 403, "credential_forbidden", ""},
		{"a mock with more members", `{"workflowId":"noop","configurable":{"mockProvider":{"id":"stream-text","x":1}}}`, 400, invalid, "mockProvider/x"},
		{"a mock that is none", `{"workflowId":"noop","configurable":{"mockProvider":{"id":"ghost"}}}`, 400, "unsupported_mock_provider", ""},
		{"outside a closed configurableSchema", `{"workflowId":"closed","configurable":{"other":1}}`, 400, invalid, "/configurable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := do(t, client(t, testKey), http.MethodPost, "/v1/runs", tc.body, "Content-Type", "application/json")
			require.Equal(t, tc.status, a.Status, "%s", a.Body)
			require.Equal(t, tc.code, a.Code(), "%s", a.Body)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			require.Contains(t, string(a.Body), tc.path)
			require.Less(t, len(a.Body), 4096, "an answer does not repeat the question")
		})
	}
}

// Requests at the limits succeed. OpenWOP host contract §2.0, leakage: a credential in the wrong
// place is not echoed.
func TestError_DoesNotEchoCredentials(t *testing.T) {
	t.Parallel()
	const secret = "sk_live_51H8abcdefghijklmnopqrstuvwxyz"
	c := client(t, testKey)
	for _, body := range []string{
		`{"workflowId":"noop","` + secret + `":1}`, `{"workflowId":"` + secret + `"}`, `{"workflowId":"noop","tenantId":"` + secret + `"}`,
		`{"workflowId":"noop","configurable":{"ai.provider":"` + secret + `"}}`, `{"workflowId":"closed","configurable":{"` + secret + `":1}}`,
		`{"workflowId":"noop","configurable":{"mockProvider":{"id":"` + secret + `"}}}`,
		`{"workflowId":"noop","inputs":{"` + secret + `":1,"` + secret + `":1}}`,
	} {
		a := do(t, c, http.MethodPost, "/v1/runs", body)
		require.GreaterOrEqual(t, a.Status, 400, body)
		require.NotContains(t, string(a.Body), secret)
	}
	for _, path := range []string{"/v1/runs/", "/v1/workflows/", "/v1/runs?status=", "/v1/runs?cursor="} {
		require.NotContains(t, string(do(t, c, http.MethodGet, path+secret, "").Body), secret, path)
	}
	require.NotContains(t, string(do(t, c, http.MethodPost, "/v1/workflows", `{"`+secret+`":1}`).Body), secret)
}

func TestInput_AtItsLimitsIsAccepted(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	tags := make([]string, 100)
	for i := range tags {
		tags[i] = strconv.Quote(strings.Repeat("ü", 250) + strconv.Itoa(i))
	}
	for _, body := range []string{
		`{"workflowId":"noop","inputs":` + nested(63) + `}`,
		`{"workflowId":"noop","tags":[` + strings.Join(tags, ",") + `]}`,
		`{"workflowId":"noop","metadata":` + nested(4) + `}`,
		`{"workflowId":"noop","inputs":{"a":"` + strings.Repeat("x", maxBody-100) + `"}}`,
		`{"workflowId":"closed","configurable":{"recursionLimit":1}}`,
		`{"workflowId":"noop","callbackUrl":"https://example.org/hook","scopeId":"s"}`,
		`{"workflowId":"noop","inputs":{"":"","\u0000":"\u0000","😀":"\ud83d\ude00"}}`,
	} {
		id, _ := run(t, c, body)
		require.Equal(t, "completed", read(t, c, id).Status, "%.80s", body)
	}
}

func TestContentType_MustBeJSON(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for header, status := range map[string]int{
		"text/plain": 400, "application/x-www-form-urlencoded": 400, "application/json-patch+json": 400, "nonsense;": 400,
		"application/json; charset=utf-8": 201, "Application/JSON": 201,
	} {
		a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "Content-Type", header)
		require.Equal(t, status, a.Status, "%s: %s", header, a.Body)
	}
}

func TestPath_UnknownOnesHaveTheirCode(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	for _, tc := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/", 400, "validation_error", ""},
		{"GET", "/runs", 400, "validation_error", ""},
		{"GET", "/v2/runs", 400, "validation_error", ""},
		{"GET", "/v1/", 404, "not_found", ""},
		{"GET", "/v1/nothing", 404, "not_found", ""},
		{"GET", "/v1/runs/" + id + "/nothing", 404, "not_found", ""},
		{"POST", "/v1/runs/" + id + ":reopen", 404, "not_found", ""},
		{"POST", "/v1/audit/verify", 405, "method_not_allowed", "GET"},
		{"DELETE", "/v1/audit", 405, "method_not_allowed", "GET"},
		{"DELETE", "/v1/runs", 405, "method_not_allowed", "GET, POST"},
		{"PUT", "/v1/runs/" + id, 405, "method_not_allowed", "GET"},
		{"GET", "/v1/runs/" + id + "/cancel", 405, "method_not_allowed", "POST"},
		{"POST", "/v1/runs/" + id + "/events", 405, "method_not_allowed", "GET"},
		{"GET", "/v1/runs:bulk-cancel", 405, "method_not_allowed", "POST"},
		{"POST", "/.well-known/openwop", 405, "method_not_allowed", "GET"},
		{"POST", "/v1/openapi.json", 405, "method_not_allowed", "GET"},
		{"GET", "/v1/runs/ghost", 404, "run_not_found", ""},
		{"GET", "/v1/runs/%2e%2e", 404, "", ""},
		{"POST", "/v1/runs/ghost/cancel", 404, "run_not_found", ""},
		{"GET", "/v1/runs/" + strings.Repeat("x", 300), 404, "run_not_found", ""},
	} {
		a := do(t, c, tc.method, tc.path, "")
		require.Equal(t, tc.status, a.Status, "%s %s: %s", tc.method, tc.path, a.Body)
		if tc.code != "" {
			require.Equal(t, tc.code, a.Code(), "%s %s: %s", tc.method, tc.path, a.Body)
		}
		for _, m := range strings.Split(tc.allow, ", ") {
			require.Contains(t, a.Header.Get("Allow"), m, "%s %s", tc.method, tc.path)
		}
	}
	a := do(t, c, http.MethodGet, "/v1/packs/anything", "")
	require.Equal(t, http.StatusNotFound, a.Status)
	require.Contains(t, a.Header.Get("Content-Type"), "text/plain", "no registry, and no answer that looks like one")
}

func TestPath_WithATrailingSlashIsUnknown(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/runs/", "/v1/workflows/"} {
		for _, method := range []string{"GET", "POST"} {
			a := do(t, client(t, testKey), method, path, "")
			require.Equal(t, http.StatusNotFound, a.Status, "%s %s: %s", method, path, a.Body)
			require.Equal(t, "not_found", a.Code(), "%s %s: %s", method, path, a.Body)
		}
	}
}

func TestDefinition_AnInvalidOneIsRejectedWithEveryPlace(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	good := node("a", "core.noop", "{}", "{}")
	port := func(v string) string { return node("b", "core.noop", "{}", `{"p":`+v+`}`) }
	for _, tc := range []struct {
		name, doc string
		paths     []string
	}{
		{"nothing", `{}`, []string{""}},
		{"no nodes", definition("bad", "", "", "", ""), []string{"/nodes"}},
		{"an id twice", definition("bad", good+","+good, "", "", ""), []string{"/nodes/1/id"}},
		{"an edge to nowhere", definition("bad", good, edge("a", "ghost"), "", ""), []string{"/edges/0/targetNodeId"}},
		{"two wrong edges", definition("bad", good, edge("ghost", "a")+","+edge("a", "ghost"), "", ""), []string{"/edges/0/sourceNodeId", "/edges/1/targetNodeId"}},
		{"a circle", definition("bad", good+","+node("b", "core.noop", "{}", "{}"), edge("a", "b")+","+edge("b", "a"), "", ""), []string{"/edges/"}},
		{"a port from nowhere", definition("bad", good+","+port(`{"type":"connection","nodeId":"ghost","outputKey":"x"}`), "", "", ""), []string{"/nodes/1/inputs/p"}},
		{"a port of an unknown kind", definition("bad", good+","+port(`{"type":"magic"}`), "", "", ""), []string{"/nodes/1/inputs/p"}},
		{"a config that is text", definition("bad", node("a", "core.noop", `"x"`, "{}"), "", "", ""), []string{"/nodes/0/config"}},
		{"a schema that is none", definition("bad", good, "", "", `,"configurableSchema":{"type":"nonsense"}`), []string{"/configurableSchema"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := do(t, c, http.MethodPost, "/v1/workflows", tc.doc)
			require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
			require.Equal(t, "validation_error", a.Code())
			var e struct {
				Details struct {
					Problems []struct{ Path, Message string }
				}
			}
			require.NoError(t, json.Unmarshal(a.Body, &e))
			require.NotEmpty(t, e.Details.Problems)
			for _, want := range tc.paths {
				found := false
				for _, p := range e.Details.Problems {
					require.NotEmpty(t, p.Message)
					found = found || strings.HasPrefix(p.Path, want)
				}
				require.True(t, found, "want %s in %s", want, a.Body)
			}
			require.Equal(t, "workflow_not_found", do(t, c, http.MethodGet, "/v1/workflows/bad", "").Code())
		})
	}
}
