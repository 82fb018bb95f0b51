package conformance

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// describedMedia is the body of a request or an answer in the host's description.
type describedMedia struct {
	Schema  describedSchema
	Example json.RawMessage
}

type describedSchema struct {
	Ref        string `json:"$ref"`
	Properties map[string]json.RawMessage
	Required   []string
}

type describedOperation struct {
	OperationID string
	Parameters  []struct {
		Name, In string
		Required bool
	}
	RequestBody *struct {
		Required bool
		Content  map[string]describedMedia
	}
	Responses map[string]struct {
		Headers map[string]json.RawMessage
		Content map[string]describedMedia
	}
	Security []json.RawMessage
}

type descriptionDoc struct {
	Paths      map[string]map[string]describedOperation
	Components struct {
		Headers map[string]json.RawMessage
		Schemas map[string]describedSchema
	}
}

// described returns the host's description, also for validation.
func described(t *testing.T) (*descriptionDoc, *harness.Description) {
	t.Helper()
	a := do(t, client(t, testKey), http.MethodGet, "/v1/openapi.json", "")
	require.Equal(t, http.StatusOK, a.Status)
	var doc descriptionDoc
	require.NoError(t, a.JSON(&doc))
	d, err := harness.ReadDescription(a.Body)
	require.NoError(t, err)
	return &doc, d
}

// each visits the operations in order.
func (d *descriptionDoc) each(visit func(path, verb string, op describedOperation)) {
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, verb := range slices.Sorted(maps.Keys(d.Paths[path])) {
			visit(path, verb, d.Paths[path][verb])
		}
	}
}

// body returns the schema of a request's body.
func (d *descriptionDoc) body(op describedOperation) describedSchema {
	s := op.RequestBody.Content["application/json"].Schema
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// Each operation with a body has an example of it, each with a JSON answer has one of that, and all are
// valid.
func TestDescription_ExamplesAreValid(t *testing.T) {
	t.Parallel()
	doc, schemas := described(t)
	doc.each(func(path, verb string, op describedOperation) {
		validate := func(m describedMedia, at ...string) {
			t.Helper()
			require.NotEmpty(t, m.Example, "%s %s has no example", verb, path)
			require.NoError(t, schemas.Validate(append(append([]string{"paths", path, verb}, at...), "schema"), m.Example), "%s %s", verb, path)
		}
		if op.RequestBody != nil {
			validate(op.RequestBody.Content["application/json"], "requestBody", "content", "application/json")
		}
		for status, r := range op.Responses {
			for media, m := range r.Content {
				if strings.HasPrefix(status, "2") && media != "*/*" && media != "application/*" {
					validate(m, "responses", status, "content", media)
				}
			}
		}
	})
}

// problemAt returns the problem of an answer that begins at a member of the body.
func problemAt(t *testing.T, a *harness.Answer, member string) bool {
	t.Helper()
	var e struct {
		Details struct{ Problems []struct{ In, Path string } }
	}
	require.NoError(t, a.JSON(&e))
	for _, p := range e.Details.Problems {
		if p.In == "" && (p.Path == "/"+member || strings.HasPrefix(p.Path, "/"+member+"/")) {
			return true
		}
	}
	return false
}

// The host misses each member that is required, and no other.
func TestDescription_RequiresWhatTheHostRequires(t *testing.T) {
	t.Parallel()
	doc, _ := described(t)
	c := client(t, testKey)
	doc.each(func(path, verb string, op describedOperation) {
		if op.RequestBody == nil || op.OperationID == "putWorkflow" || op.OperationID == "validateWorkflow" || strings.Contains(path, "{token}") {
			return // definitions have a schema of their own, and a token is checked first
		}
		var example map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(op.RequestBody.Content["application/json"].Example, &example))
		if example["workflowId"] != nil { // its inputs are checked after it is found
			example["workflowId"] = json.RawMessage(`"none"`)
		}
		if op.OperationID == "forkRun" { // a branch also requires fromSeq
			example["mode"] = json.RawMessage(`"replay"`)
		}
		s := doc.body(op)
		for member := range s.Properties {
			part := maps.Clone(example)
			delete(part, member)
			body, err := json.Marshal(part)
			require.NoError(t, err)
			a := do(t, c, strings.ToUpper(verb), pathParameter.ReplaceAllString(path, "none"), string(body))
			missed := a.Status == http.StatusBadRequest && problemAt(t, a, member)
			require.Equal(t, slices.Contains(s.Required, member), missed, "%s %s without %s: %s", verb, path, member, a.Body)
		}
	})
}

// Every operation with a credential refuses parameters that it does not describe.
func TestDescription_OperationsRefuseOtherParameters(t *testing.T) {
	t.Parallel()
	doc, _ := described(t)
	c := client(t, testKey)
	n := 0
	doc.each(func(path, verb string, op describedOperation) {
		if len(op.Security) == 0 {
			return
		}
		n++
		a := do(t, c, strings.ToUpper(verb), pathParameter.ReplaceAllString(path, "none")+"?nonesuch=1", "")
		require.Equal(t, http.StatusBadRequest, a.Status, "%s %s: %s", verb, path, a.Body)
		require.Contains(t, string(a.Body), `"path":"nonesuch"`, "%s %s", verb, path)
	})
	require.GreaterOrEqual(t, n, 40)
}

// Each header that is described is sent. Those of limits, assets and ranges have tests of their own.
func TestDescription_HeadersAreSent(t *testing.T) {
	t.Parallel()
	elsewhere := map[string]string{
		"RateLimit": "test/e2e/ratelimit_test.go", "RateLimit-Policy": "test/e2e/ratelimit_test.go", "Retry-After": "test/e2e/ratelimit_test.go",
		"Accept-Ranges": "media_test.go", "Content-Range": "services/gateway/rest/assets_test.go",
		"Content-Disposition": "services/gateway/rest/assets_test.go", "Content-Security-Policy": "media_test.go", "Referrer-Policy": "media_test.go",
	}
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	cancel := func() *harness.Answer {
		return do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "", "Idempotency-Key", "described-"+id)
	}
	cancel()
	answers := []*harness.Answer{
		cancel(),
		do(t, c, http.MethodGet, "/.well-known/openwop", ""),
		do(t, client(t, ""), http.MethodGet, "/v1/runs", ""),
		do(t, c, http.MethodGet, "/schemas/workflow.schema.json", ""),
	}
	doc, _ := described(t)
	for name := range doc.Components.Headers {
		sent := slices.ContainsFunc(answers, func(a *harness.Answer) bool { return a.Header.Get(name) != "" })
		require.True(t, sent || elsewhere[name] != "", name)
		require.False(t, sent && elsewhere[name] != "", name)
	}
}
