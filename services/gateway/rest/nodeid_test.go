package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// The contract has no pattern for node ids, so answers must work with any id.
func TestResolve_AcceptsAnyNodeID(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const before = "/v1/runs/run_1/interrupts/"
	for _, id := range []string{
		"gate", "a b", "é", "step:1", ":resume", "a/b", "a//b/", "a%2Fb", "..", "-", "x:cancel", "/",
	} {
		w := h.as(t, full, http.MethodPost, before+url.PathEscape(id), `{"resumeValue":1}`)
		require.Equal(t, http.StatusOK, w.Code, "%s: %s", id, w.Body)
		var got struct{ NodeID string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		require.Equal(t, id, got.NodeID)
	}
	w := h.as(t, full, http.MethodPost, before+"step:1", `{"resumeValue":1}`)
	require.Contains(t, w.Body.String(), `"step:1"`, "a colon may stand as it is")
	for _, path := range []string{
		before,
		before + "a/b",
		"/v1/runs/run_1%2Fx/interrupts/a%2Fb", "/v1/runs/run_1/other/a%2Fb",
	} {
		require.Equal(t, http.StatusNotFound, h.as(t, full, http.MethodPost, path, `{"resumeValue":1}`).Code, path)
	}
	require.Equal(t, http.StatusMethodNotAllowed, h.as(t, full, http.MethodGet, before+"a%2Fb", "").Code)
	require.Equal(t, http.StatusUnauthorized, h.do(t, http.MethodPost, before+"a%2Fb", `{"resumeValue":1}`).Code)
	require.Equal(t, http.StatusForbidden, h.as(t, reader, http.MethodPost, before+"a%2Fb", `{"resumeValue":1}`).Code)
}
