package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

// OpenWOP host contract §2.1: a key that cannot be carried is an error. Without a key the request
// would be executed twice.
func TestHeaders_AreCheckedBeforeTheTranslation(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, name := range []string{"Idempotency-Key", "X-Dedup", "X-Force-Engine-Version"} {
		for what, values := range map[string][]string{
			"not ASCII":   {"order-é-1"},
			"a raw byte":  {"order-\x80"},
			"a tab":       {"a\tb"},
			"DEL":         {"a\x7f"},
			"too long":    {strings.Repeat("k", 256)},
			"two of them": {"a", "b"},
		} {
			for target, body := range map[string]string{
				"/v1/runs":              `{"workflowId":"wf"}`,
				"/v1/runs/run_1/cancel": `{}`,
			} {
				for _, credential := range []string{tester, full} {
					r := post(t, target, body)
					r.Header[name] = values
					r.Header.Set("Authorization", credential)
					e := refused(t, serve(h, r), fault.ValidationError)
					require.Contains(t, e.Message, name, "%s at %s", what, target)
				}
			}
		}
	}
	refused(t, h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Idempotency-Key", " "), fault.ValidationError)
	require.Empty(t, h.dispatcher.starts)
	require.Zero(t, h.dispatcher.cancels)
}

// OpenWOP host contract §2.1: a read ignores the key.
func TestHeaders_OfChangesDoNotMatterToReads(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "GET", "/v1/runs/run_1", "", "Idempotency-Key", "é", "Grpc-Timeout", "nonsense")
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
}

func TestHeaders_AStreamHasOneCursor(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, values := range [][]string{{"1", "0"}, {"1é"}, {"-1"}} {
		r := post(t, "/v1/runs/run_1/events", "")
		r.Method = http.MethodGet
		r.Header["Last-Event-Id"] = values
		refused(t, serve(h, r), fault.ValidationError)
	}
}
