package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

// problem is an entry of details.problems.
type problem struct {
	In, Path, Message, Suggestion string
	Allowed                       []string
}

// problems returns what the details list.
func (e *envelope) problems(t testing.TB) []problem {
	t.Helper()
	var d struct{ Problems []problem }
	text, err := json.Marshal(e.Details)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	require.NotEmpty(t, d.Problems)
	return d.Problems
}

func TestQuery_IsRejectedWithTheParameter(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, c := range []struct {
		method, target, path, says string
	}{
		{"GET", "/v1/runs?limt=1", "limt", `did you mean limit?`},
		{"GET", "/v1/runs?workflow_id=a", "workflow_id", "did you mean workflowId?"},
		{"GET", "/v1/runs?Status=failed", "Status", "did you mean status?"},
		{"GET", "/v1/runs?qqqqqqqqqqq=1", "qqqqqqqqqqq", "known are limit, cursor, status, workflowId, tag, filter"},
		{"GET", "/v1/runs?=1", "", "unknown parameter"},
		{"GET", "/v1/runs?%ff=1", "\ufffd", "unknown parameter"},
		{"GET", "/v1/runs?limit=1&limit=1", "limit", "2 times; send it once"},
		{"GET", "/v1/runs?status=failed&status=completed", "status", "2 times; send it once"},
		{"GET", "/v1/runs?limit=", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=x", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=1.0", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=010", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=0x10", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=1_0", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=%2B1", "limit", "want an integer"},
		{"GET", "/v1/runs?limit=4294967297", "limit", "want an integer of 32 bits"},
		{"GET", "/v1/runs?limit=0", "limit", "want 1 to 200"},
		{"GET", "/v1/runs?status=none", "status", "want one of"},
		{"GET", "/v1/runs?tag=%ff", "tag", "UTF-8"},
		{"GET", "/v1/runs?tag=a%00", "tag", "NUL"},
		{"GET", "/v1/runs?tag=%zz", "", "percent-encoded"},
		{"GET", "/v1/runs?limit=1;cursor=a", "", "separated by &"},
		{"GET", "/v1/interrupts?eligible=yes", "eligible", "want true or false"},
		{"GET", "/v1/interrupts?eligible=1", "eligible", "want true or false"},
		{"GET", "/v1/runs/run_1?full=true", "full", "this path has none"},
		{"GET", "/v1/runs/run_1?runId=run_2", "runId", "this path has none"},
		{"GET", "/v1/runs/run_1/events?streamModes=debug", "streamModes", "did you mean streamMode?"},
		{"GET", "/v1/runs/run_1/events?bufferMs=1&bufferMs=1", "bufferMs", "2 times; send it once"},
		{"GET", "/v1/runs:watch?status=failed", "status", "this path has none"},
		{"GET", "/v1/interrupts/token?x=1", "", ""},
		{"POST", "/v1/runs?dryRun=true", "dryRun", "this path has none"},
		{"DELETE", "/v1/runs/run_1?force=true", "force", "this path has none"},
	} {
		t.Run(c.method+" "+c.target, func(t *testing.T) {
			t.Parallel()
			w := h.as(t, full, c.method, c.target, "")
			if c.says == "" { // an unknown token is reported first
				require.Equal(t, http.StatusNotFound, w.Code)
				return
			}
			e := refused(t, w, fault.ValidationError)
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, e.Message, c.says)
			require.Equal(t, c.path, e.problems(t)[0].Path)
			require.Equal(t, "query", e.problems(t)[0].In)
		})
	}
}

func TestQuery_ListsEveryProblem(t *testing.T) {
	t.Parallel()
	w := newHost(t).as(t, full, http.MethodGet, "/v1/runs?limt=1&status=failed&status=failed&cursor=a", "")
	e := refused(t, w, fault.ValidationError)
	require.Equal(t, []problem{
		{
			In: "query", Path: "limt", Message: "unknown parameter; known are limit, cursor, status, workflowId, tag, filter, sort, order; did you mean limit?",
			Suggestion: "limit", Allowed: []string{"limit", "cursor", "status", "workflowId", "tag", "filter", "sort", "order"},
		},
		{In: "query", Path: "status", Message: "the parameter is there 2 times; send it once"},
	}, e.problems(t))
}

// Tools of the protocol read discovery with a parameter of their own, to avoid caches.
func TestQuery_IsIgnoredByPublicDocuments(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, target := range []string{"/.well-known/openwop?cb=1", "/healthz?verbose", "/v1/openapi.json?v=1", "/schemas/workflow.schema.json?v=1"} {
		require.Equal(t, http.StatusOK, h.as(t, "", http.MethodGet, target, "").Code, target)
	}
}

// A client that polls because its stream failed sends the parameters of the stream, too. Lists are
// several parameters of one name.
func TestQuery_Allows(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, target := range []string{
		"/v1/runs/run_1/events/poll?streamMode=debug&bufferMs=5&timeout=1",
		"/v1/workflows:statistics?workflowId=a&workflowId=b",
		"/v1/interrupts/token?utm_source=mail",
	} {
		w := h.as(t, full, http.MethodGet, target, "")
		require.NotEqual(t, http.StatusBadRequest, w.Code, "%s: %s", target, w.Body)
	}
}

// A caller without a credential does not learn the parameters of a path.
func TestQuery_IsCheckedAfterTheCredential(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	require.Equal(t, http.StatusUnauthorized, h.as(t, "", http.MethodGet, "/v1/runs?limt=1", "").Code)
	require.Equal(t, http.StatusUnauthorized, h.as(t, "", http.MethodGet, "/v1/runs/run_1/events?x=1", "").Code)
}
