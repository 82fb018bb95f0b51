package seam_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/seam"
)

// Every rejection of a seam passes the scrubber as an error with a code, because the scrubber redacts
// no other errors. That includes codes of seams only (OpenWOP envelope contract §11, sinks).
func TestServeHTTP_EveryRefusalPassesTheScrubber(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, path, body string
		code             fault.Code
		status           int
	}{
		{"a code of the table", "test/emit-provider-usage", `{"runId":"r"}`, fault.InvalidArgument, 400},
		{"no JSON", "test/debug-bundle/export", `{"x`, fault.InvalidArgument, 400},
		{
			"reference in usage", "test/emit-provider-usage",
			`{"runId":"r","payload":{"provider":"secret:x","model":"m","inputTokens":1,"outputTokens":2}}`,
			"provider_usage_credential_leak", 400,
		},
		{
			"credential in a refusal", "test/emit-envelope-reliability",
			`{"runId":"r","type":"envelope.refusal","payload":{"nodeId":"n","provider":"p","model":"m","credentialRef":"x"}}`,
			"envelope_reliability_credential_leak", 400,
		},
		{
			"content in a recovery", "test/emit-envelope-reliability",
			`{"runId":"r","type":"envelope.recovery.applied","payload":{"nodeId":"n","path":"custom","text":"x"}}`,
			"envelope_recovery_content_leak", 400,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &seam.Handler{
				Logger: slog.New(slog.DiscardHandler),
				Clean: func(_ context.Context, err error) error {
					f, ok := errors.AsType[*fault.Error](err)
					require.True(t, ok, "%T", err)
					return fault.New(f.Code, "scrubbed")
				},
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, seam.Prefix+c.path, strings.NewReader(c.body)))
			require.Equal(t, c.status, w.Code, "%s", w.Body)
			var answer struct {
				Error struct {
					Code    fault.Code
					Message string
				}
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
			require.Equal(t, c.code, answer.Error.Code)
			require.Equal(t, "scrubbed", answer.Error.Message)
		})
	}
}

// A seam that repeats its input removes secrets from it, or returns an error.
func TestServeHTTP_EveryAnswerPassesTheScrubber(t *testing.T) {
	t.Parallel()
	const body = `{"payload":{"note":"hunter2-hunter2"}}`
	answer := func(scrub func(context.Context, []byte) (json.RawMessage, error)) *httptest.ResponseRecorder {
		h := &seam.Handler{
			Logger: slog.New(slog.DiscardHandler), Redact: scrub, Clean: func(_ context.Context, err error) error { return err },
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, seam.Prefix+"test/llm-prompt-wrap", strings.NewReader(body)))
		return w
	}
	w := answer(func(_ context.Context, doc []byte) (json.RawMessage, error) {
		return []byte(strings.ReplaceAll(string(doc), "hunter2-hunter2", "[REDACTED:k]")), nil
	})
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "[REDACTED:k]")
	require.NotContains(t, w.Body.String(), "hunter2")
	w = answer(func(context.Context, []byte) (json.RawMessage, error) {
		return nil, fault.New(fault.ServiceUnavailable, "away")
	})
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotContains(t, w.Body.String(), "hunter2")
}

// The text of a panic is not visible anywhere, and the process continues (OpenWOP
// envelope contract §11, sinks).
func TestServeHTTP_HidesThePanicText(t *testing.T) {
	t.Parallel()
	h := &seam.Handler{
		Logger: slog.New(slog.DiscardHandler),
		Clean:  func(_ context.Context, err error) error { return err },
	}
	ask := func(body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, seam.Prefix+"test/panic", strings.NewReader(body)))
		return w
	}
	require.Equal(t, http.StatusBadRequest, ask(`{"where":"handler"}`).Code)
	require.Equal(t, http.StatusBadRequest, ask(`{"where":"elsewhere","text":"x"}`).Code)
	require.PanicsWithValue(t, "x", func() { ask(`{"where":"handler","text":"x"}`) })
}
