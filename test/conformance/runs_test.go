package conformance

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestCreate_AnswersWithAPendingRunAndAbsoluteAddresses(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	v := create(t, c, `{"workflowId":"noop","tenantId":"acme"}`)
	require.Equal(t, "pending", v.Status)
	require.Equal(t, "noop", v.WorkflowID)
	require.NotContains(t, v.RunID, ":")
	require.Equal(t, c.Base+"/v1/runs/"+v.RunID, v.StatusURL)
	require.Equal(t, v.StatusURL+"/events", v.EventsURL)
	u, err := url.Parse(v.EventsURL)
	require.NoError(t, err)
	require.True(t, u.IsAbs())
	require.Equal(t, "completed", await(t, c, v.RunID, patience, "completed").Status)
}

// A write is readable immediately, through every API.
func TestCreate_IsReadableImmediately(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for range 20 {
		id := create(t, c, `{"workflowId":"three"}`).RunID
		require.Equal(t, id, read(t, c, id).RunID)
	}
}

func TestSnapshot_EchoesWhatTheCallerSent(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"typed","inputs":{"text":"hello","extra":{"n":9007199254740993,"e":1.50}},
		"tags":["a","ü"],"metadata":{"who":{"x":[1]}},"configurable":{"recursionLimit":7,"vendorKey":{"deep":true}}}`)
	s := read(t, c, id)
	require.Equal(t, "completed", s.Status)
	require.JSONEq(t, `"hello"`, string(s.Inputs["text"]))
	require.Contains(t, string(s.Inputs["extra"]), "9007199254740993", "integers stay integers")
	require.JSONEq(t, `"hello"`, string(s.Variables["text"]))
	require.Equal(t, []string{"a", "ü"}, s.Tags)
	require.JSONEq(t, `{"who":{"x":[1]}}`, string(s.Metadata))
	require.JSONEq(t, `{"recursionLimit":7,"vendorKey":{"deep":true}}`, string(s.Configurable))
	require.NotEmpty(t, s.StartedAt)
	require.NotEmpty(t, s.CompletedAt)
}

func TestSnapshot_IsReadConditionally(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"noop"}`)
	a := do(t, c, http.MethodGet, "/v1/runs/"+id, "")
	tag := a.Header.Get("ETag")
	require.Equal(t, fmt.Sprintf("%q", fmt.Sprintf("%s.%d", id, len(events)-1)), tag)
	a = do(t, c, http.MethodGet, "/v1/runs/"+id, "", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, a.Status)
	require.Empty(t, a.Body)
	a = do(t, c, http.MethodGet, "/v1/runs/"+id, "", "If-None-Match", `"`+id+`.0"`)
	require.Equal(t, http.StatusOK, a.Status)
}

func TestLog_HasTheCanonicalSequences(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, tc := range []struct{ name, body, want, code string }{
		{"noop", `{"workflowId":"noop"}`, "run.started node.started node.completed run.completed", ""},
		{"three", `{"workflowId":"three"}`, "run.started node.started node.completed node.started node.completed node.started node.completed run.completed", ""},
		{"fail", `{"workflowId":"fail"}`, "run.started node.started node.failed run.failed", "conformance_test_failure"},
		{"unknown provider", `{"workflowId":"nobody"}`, "run.started node.started node.failed run.failed", "provider_not_supported"},
		{"node cap", `{"workflowId":"three","configurable":{"recursionLimit":2}}`, "run.started node.started node.completed node.started node.completed cap.breached run.failed", "recursion_limit_exceeded"},
		{"run time", `{"workflowId":"wait","configurable":{"runTimeoutMs":150}}`, "run.started node.started cap.breached node.cancelled run.failed", "run_timeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			id, events := run(t, c, tc.body)
			require.Equal(t, tc.want, strings.Join(names(events), " "))
			for i, e := range events {
				require.Equal(t, i, e.Sequence)
				require.Equal(t, id, e.RunID)
			}
			s := read(t, c, id)
			if tc.code == "" {
				require.Equal(t, "completed", s.Status)
				require.Nil(t, s.Error)
				return
			}
			require.Equal(t, "failed", s.Status)
			require.Equal(t, tc.code, s.Error.Code)
			require.NotEmpty(t, s.Error.Message)
		})
	}
}

func TestModel_AnUnknownOneFailsItsNode(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"nameless"}`)
	require.Contains(t, names(events), "node.failed")
	require.Equal(t, "model_not_supported", read(t, c, id).Error.Code)
}

type list struct {
	Runs []struct {
		RunID, WorkflowID, Status, CreatedAt string
		Tags                                 []string
	}
	NextCursor string
}

func page(t *testing.T, c *harness.Client, query string) list {
	t.Helper()
	a := do(t, c, http.MethodGet, "/v1/runs"+query, "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var l list
	require.NoError(t, a.JSON(&l))
	return l
}

func TestList_FiltersAndPages(t *testing.T) {
	t.Parallel()
	c := client(t, quietKey)
	var made []string
	for i := range 7 {
		id, _ := run(t, c, fmt.Sprintf(`{"workflowId":"noop","tags":["all","n%d"]}`, i))
		made = append([]string{id}, made...) // newest first
	}
	failed, _ := run(t, c, `{"workflowId":"fail"}`)

	require.Len(t, page(t, c, "").Runs, 8)
	require.Equal(t, failed, page(t, c, "?status=failed").Runs[0].RunID)
	require.Len(t, page(t, c, "?status=failed").Runs, 1)
	require.Len(t, page(t, c, "?workflowId=noop").Runs, 7)
	require.Len(t, page(t, c, "?tag=all").Runs, 7)
	require.Equal(t, made[6], page(t, c, "?tag=n0").Runs[0].RunID)
	require.Empty(t, page(t, c, "?tag=n0&status=failed").Runs)
	require.Empty(t, page(t, c, "?workflowId=ghost").Runs)

	var got []string
	for cursor, pages := "", 1; ; pages++ {
		p := page(t, c, "?workflowId=noop&limit=3&cursor="+url.QueryEscape(cursor))
		for _, r := range p.Runs {
			got = append(got, r.RunID)
			require.Equal(t, "completed", r.Status)
		}
		if cursor = p.NextCursor; cursor == "" {
			require.Equal(t, 3, pages)
			break
		}
	}
	require.Equal(t, made, got)

	for _, query := range []string{"?limit=0", "?limit=201", "?limit=x", "?status=done", "?cursor=%21%21"} {
		a := do(t, c, http.MethodGet, "/v1/runs"+query, "")
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", query, a.Body)
		require.Equal(t, "validation_error", a.Code())
	}
}

func TestWorkflow_IsReadAsRegistered(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, doc := range workflows {
		var d struct{ ID string }
		require.NoError(t, (&harness.Answer{Body: []byte(doc)}).JSON(&d))
		a := do(t, c, http.MethodGet, "/v1/workflows/"+d.ID, "")
		require.Equal(t, http.StatusOK, a.Status)
		require.JSONEq(t, doc, string(a.Body))
	}
	a := do(t, c, http.MethodGet, "/v1/workflows/ghost", "")
	require.Equal(t, http.StatusNotFound, a.Status)
	require.Equal(t, "workflow_not_found", a.Code())
}

func TestWorkflow_VersionNeverChanges(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	doc := definition("fixed", node("a", "core.noop", "{}", "{}"), "", "", "")
	a := do(t, c, http.MethodPost, "/v1/workflows", doc)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	a = do(t, c, http.MethodPost, "/v1/workflows", doc)
	require.Equal(t, http.StatusOK, a.Status, "the same document again: nothing was created")
	for range 2 {
		a = do(t, c, http.MethodPost, "/v1/workflows", doc, "Idempotency-Key", "unchanged")
		require.Equal(t, http.StatusOK, a.Status, "nor by a replay of that")
	}
	a = do(t, c, http.MethodPost, "/v1/workflows", definition("fixed", node("b", "core.noop", "{}", "{}"), "", "", ""))
	require.Equal(t, http.StatusConflict, a.Status)
	require.Equal(t, "conflict", a.Code())
}
