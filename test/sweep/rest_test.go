package sweep

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// secrets of which only a part looks like a credential.
var partly = []secret{
	{"tracker", "github_pat_11ABCDEFG0hijklmnopqrs_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7"},
	{"plum", "hunter2.plum.sk-abcdef12345678,and-the-rest-of-it"},
	{"spoken", "open sesame: sk_live_51H8abcdefghijklmnop (twice)"},
}

// Errors mask texts that look like credentials, but only after registered secrets were redacted.
// Otherwise the rest of a secret that only partly looks like one would remain (OpenWOP envelope
// contract §11, sinks).
func TestErrors_LeaveNothingOfASecretThatPartlyLooksLikeOne(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	h := harness.Start(t, "--secrets-file", secretsFile(t, partly), "--redact-shapes=false")
	c := h.Client("dev-key")
	for _, s := range partly {
		for _, request := range [][2]string{
			{"/v1/workflows", `{` + mustJSON(s.value) + `:1}`},
			{"/v1/workflows", strings.Replace(workflow("w", node("n", "core.noop", "{}", "{}")), `"metadata":{}`, `"metadata":{},`+mustJSON(s.value)+`:1`, 1)},
			{"/v1/runs", `{"workflowId":` + mustJSON(s.value) + `}`},
			{"/v1/runs", `{"workflowId":"w","configurable":{` + mustJSON(s.value) + `:1}}`},
			{"/v1/runs/" + strings.NewReplacer(" ", "%20", ":", "%3A").Replace(s.value) + "/cancel", `{}`},
		} {
			a, err := c.Do(t.Context(), http.MethodPost, request[0], request[1])
			require.NoError(t, err)
			require.GreaterOrEqual(t, a.Status, http.StatusBadRequest)
			for at := range len(s.value) - 8 {
				require.NotContains(t, string(a.Body), s.value[at:at+8], "%s", request[0])
			}
		}
	}
}
