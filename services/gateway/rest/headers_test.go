package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/rpc/rpctest"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
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

// Of two credentials, a proxy may have checked the other one.
func TestHeaders_ThereIsOneCredential(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for target, method := range map[string]string{"/v1/runs": "POST", "/v1/runs/run_1": "GET", "/v1/runs/run_1/events": "GET", "/v1/none": "GET"} {
		r := post(t, target, `{"workflowId":"wf"}`)
		r.Method = method
		r.Header["Authorization"] = []string{full, tester}
		refused(t, serve(h, r), fault.Unauthenticated)
	}
	conn, _ := rpctest.Serve(t, h.svc.Server())
	ctx := metadata.AppendToOutgoingContext(bearing(t, full), "authorization", tester)
	_, err := openwopv1.NewEngineClient(conn).CreateRun(ctx, &openwopv1.CreateRunRequest{WorkflowId: "wf"})
	require.Equal(t, fault.Unauthenticated, fault.CodeOf(err), "%v", err)
	require.Empty(t, h.dispatcher.starts)
}

// A coded body is refused with the reason, whether it is coded or not.
func TestHeaders_ABodyHasNoCoding(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, coding := range []string{"gzip", "deflate", "br", "identity, gzip"} {
		e := refused(t, h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Content-Encoding", coding), fault.ValidationError)
		require.Contains(t, e.Message, "Content-Encoding")
	}
	require.Empty(t, h.dispatcher.starts)
	require.Equal(t, http.StatusCreated, h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Content-Encoding", "Identity").Code)
}
