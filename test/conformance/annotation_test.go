package conformance

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func annotations(t *testing.T, c *harness.Client, id string) (out []map[string]any) {
	t.Helper()
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/annotations", "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var list struct{ Annotations []map[string]any }
	require.NoError(t, a.JSON(&list))
	require.Contains(t, string(a.Body), `"annotations":[`)
	return list.Annotations
}

// OpenWOP host contract §2.8.
func TestAnnotations_AreSeparateFromTheRun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, before := run(t, c, `{"workflowId":"noop"}`)
	path := "/v1/runs/" + id + "/annotations"
	require.Empty(t, annotations(t, c, id))
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, body := range []string{
		`{"signal":{"kind":"rating","rating":4}}`,
		`{"target":{"eventId":"` + before[1].EventID + `","nodeId":"a"},"signal":{"kind":"correction","correction":"use ` + secret + `"},"note":"not ` + testKey + `"}`,
	} {
		a := do(t, c, http.MethodPost, path, body)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		require.NotContains(t, string(a.Body), secret)
		require.NotContains(t, string(a.Body), testKey)
		require.Contains(t, string(a.Body), `"runId":"`+id+`"`)
	}
	list := annotations(t, c, id)
	require.Len(t, list, 2)
	require.EqualValues(t, 4, list[0]["signal"].(map[string]any)["rating"]) //nolint:forcetypeassert // the schema requires it

	after, err := c.Finish(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, before, after, "the log is as it was")
	for _, other := range []string{"/v1/runs/" + id, "/v1/runs/" + id + "/debug-bundle"} {
		require.NotContains(t, string(do(t, c, http.MethodGet, other, "").Body), "annotationId")
	}
	foreign := client(t, otherKey)
	require.Equal(t, "run_not_found", do(t, foreign, http.MethodGet, path, "").Code())
	require.Equal(t, "run_not_found", do(t, foreign, http.MethodPost, path, `{"signal":{"kind":"flag"}}`).Code())
	require.Equal(t, http.StatusForbidden, do(t, client(t, writerKey), http.MethodPost, path, `{"signal":{"kind":"flag"}}`).Status)
	a := do(t, c, http.MethodPost, path, `{"signal":{"kind":"rating","rating":9}}`)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "/signal/rating")
}

// OpenWOP host contract §7.2: forks do not inherit annotations.
func TestAnnotations_AreNotForked(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/runs/"+id+"/annotations", `{"signal":{"kind":"flag"}}`).Status)
	for _, body := range []string{`{"mode":"replay"}`, `{"mode":"branch","fromSeq":2}`} {
		require.Empty(t, annotations(t, c, fork(t, c, id, body).RunID))
	}
	require.Len(t, annotations(t, c, id), 1)
}

func TestAnnotations_AreCreatedOncePerKey(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	var first string
	for n := range 2 {
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/annotations", `{"signal":{"kind":"flag"}}`, "Idempotency-Key", "flag-"+id)
		require.Equal(t, http.StatusCreated, a.Status)
		if n == 0 {
			first = string(a.Body)
		}
		require.Equal(t, first, string(a.Body))
	}
	require.Len(t, annotations(t, c, id), 1)
}

// Subscribers of the run receive annotations, without an id to resume from.
func TestAnnotations_AreSentToSubscribers(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, mode := range []string{"updates", "values", "debug"} {
		id := create(t, c, `{"workflowId":"wait"}`).RunID
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var received harness.Frame
		done := make(chan error, 1)
		go func() {
			_, err := c.Stream(ctx, "/v1/runs/"+id+"/events?streamMode="+mode, func(f harness.Frame) bool {
				if f.Event == "run.annotated" {
					received = f
				}
				return received.Event == ""
			})
			done <- err
		}()
		// Annotations before the stream starts are not delivered.
		var err error
		require.Eventually(t, func() bool {
			a := do(t, c, http.MethodPost, "/v1/runs/"+id+"/annotations", `{"signal":{"kind":"label","label":"slow"}}`)
			require.Equal(t, http.StatusCreated, a.Status)
			select {
			case err = <-done:
				return true
			default:
				return false
			}
		}, 30*time.Second, 20*time.Millisecond)
		require.NoError(t, err)
		require.Empty(t, received.ID)
		require.Contains(t, received.Data, `"label":"slow"`)
		do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "")
	}
}
