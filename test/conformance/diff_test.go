package conformance

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

type runDiff struct {
	A, B          string
	DivergedAtSeq *int
	EventDiffs    []struct {
		Seq int
		Op  string
	}
	StateDiff map[string]struct{ A, B any }
	Truncated bool
}

// OpenWOP host contract §2.9.
func TestDiff_ShowsWhereTwoRunsDiverge(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	one, _ := run(t, c, `{"workflowId":"talk","configurable":{"ai":{"provider":"sample","model":"sample-1"}},"inputs":{}}`)
	same, _ := run(t, c, `{"workflowId":"typed","inputs":{"text":"a"}}`)
	twin, _ := run(t, c, `{"workflowId":"typed","inputs":{"text":"a"}}`)
	other, _ := run(t, c, `{"workflowId":"three"}`)
	diff := func(a, b string) (d runDiff) {
		t.Helper()
		res := do(t, c, http.MethodGet, "/v1/runs/"+a+":diff?against="+b, "")
		require.Equal(t, http.StatusOK, res.Status, "%s", res.Body)
		require.Contains(t, string(res.Body), `"divergedAtSeq":`)
		require.NoError(t, res.JSON(&d))
		require.Equal(t, [2]string{a, b}, [2]string{d.A, d.B})
		return d
	}
	for _, pair := range [][2]string{{one, one}, {same, twin}} {
		d := diff(pair[0], pair[1])
		require.Nil(t, d.DivergedAtSeq, "%+v", d)
		require.Empty(t, d.EventDiffs)
		require.Empty(t, d.StateDiff)
	}
	d := diff(same, other)
	require.NotNil(t, d.DivergedAtSeq)
	require.NotEmpty(t, d.EventDiffs)
	require.Contains(t, d.StateDiff, "/variables/text")
	require.False(t, d.Truncated)
}

func TestDiff_NeedsTwoRunsOfTheTenant(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	mine, _ := run(t, c, `{"workflowId":"noop"}`)
	theirs, _ := run(t, client(t, otherKey), `{"workflowId":"noop"}`)
	for path, status := range map[string]int{
		mine + ":diff": http.StatusBadRequest, mine + ":diff?against=": http.StatusBadRequest,
		mine + ":diff?against=" + theirs: http.StatusNotFound, theirs + ":diff?against=" + mine: http.StatusNotFound,
		mine + ":diff?against=run_nobody": http.StatusNotFound, mine + ":dif?against=" + mine: http.StatusNotFound,
		":diff?against=" + mine: http.StatusNotFound,
	} {
		require.Equal(t, status, do(t, c, http.MethodGet, "/v1/runs/"+path, "").Status, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, do(t, c, http.MethodPost, "/v1/runs/"+mine+":diff?against="+mine, "{}").Status)
	require.Equal(t, http.StatusForbidden, do(t, client(t, writerKey), http.MethodGet, "/v1/runs/"+mine+":diff?against="+mine, "").Status)
}
