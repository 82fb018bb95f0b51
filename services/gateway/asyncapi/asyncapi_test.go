package asyncapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/asyncapi"
	"waybill.dev/waybill/services/gateway/rest"
	"waybill.dev/waybill/services/gateway/webhook"
)

type object = map[string]any

func described(t *testing.T, base string) object {
	t.Helper()
	b, err := asyncapi.Document(base)
	require.NoError(t, err)
	var doc object
	require.NoError(t, json.Unmarshal(b, &doc))
	return doc
}

// at returns the value at a path of members.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, name := range path {
		require.Contains(t, v, name)
		v = v.(object)[name]
	}
	return v
}

func TestDocument_HasTheAddressesOfTheHost(t *testing.T) {
	t.Parallel()
	doc := described(t, "")
	frames := subject.Run{Tenant: "{tenant}", WorkflowID: "{workflowId}", RunID: "{runId}"}.Frame("{kind}")
	require.Equal(t, frames, at(t, doc, "channels", "runLog", "address"))
	kinds := at(t, doc, "channels", "runLog", "parameters", "kind", "enum").([]any)
	require.ElementsMatch(t, []any{"start", "open", "step", "wake", "end", "seal", "erase"}, kinds)
	for _, kind := range kinds {
		require.True(t, subject.Kind(kind.(string)).Valid())
	}
	require.Equal(t, rest.WatchPath, at(t, doc, "channels", "runList", "address"))
	require.Equal(t, "/v1/runs/{runId}/events", at(t, doc, "channels", "runEvents", "address"))
	require.NotContains(t, at(t, doc, "servers", "http"), "pathname")
	require.Equal(t, "/a/b", at(t, described(t, "/a/b"), "servers", "http", "pathname"))
}

func TestDocument_HasTheHeadersOfTheHost(t *testing.T) {
	t.Parallel()
	doc := described(t, "")
	headers := func(name string) []string {
		return slices.Collect(maps.Keys(at(t, doc, "components", "schemas", name, "properties").(object)))
	}
	signed := []string{
		webhook.HeaderID, webhook.HeaderType, webhook.HeaderTimestamp, webhook.HeaderSignature, webhook.HeaderAlgorithm,
		webhook.HeaderPrevious, webhook.HeaderStandardID, webhook.HeaderStandardTimestamp, webhook.HeaderStandardSignature, "traceparent",
	}
	require.ElementsMatch(t, signed, headers("WebhookHeaders"))
	require.ElementsMatch(t, append(signed, webhook.HeaderKey), headers("CallbackHeaders"))
	require.ElementsMatch(t, []string{
		frame.HeaderFirst, frame.HeaderLast, frame.HeaderTypes, frame.HeaderTrust, frame.HeaderPrev, frame.HeaderHash, frame.HeaderWriter, frame.HeaderNote, "traceparent",
	}, headers("FrameHeaders"))
}

// Every message has a payload, every operation a channel, and every reference a target.
func TestDocument_ResolvesEveryReference(t *testing.T) {
	t.Parallel()
	doc := described(t, "")
	n := 0
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case object:
			if ref, ok := v["$ref"].(string); ok {
				n++
				at(t, doc, splitPointer(ref)...)
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
	require.Greater(t, n, 100)
}

func TestHandler_ServesTheDocument(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	asyncapi.Handler("").ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, rest.AsyncAPIPath, nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.True(t, json.Valid(w.Body.Bytes()))
}

func splitPointer(ref string) []string { return strings.Split(strings.TrimPrefix(ref, "#/"), "/") }
