package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// delivery is a request that a receiver got, as standardwebhooks reads it.
type delivery struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// verify asks the library of Standard Webhooks about deliveries: it returns the events, or why the
// library refuses them.
func verify(t *testing.T, deliveries []delivery) (verdicts []struct {
	Event struct{ Type string }
	Error string
},
) {
	t.Helper()
	asked, err := json.Marshal(deliveries)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "node", "verify.mjs")
	cmd.Dir, cmd.Stdin = peers(t), bytes.NewReader(asked)
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &verdicts))
	require.Len(t, verdicts, len(deliveries))
	return verdicts
}

// A receiver may use a library of Standard Webhooks with the secret as it was returned, also while a
// rotation overlaps.
func TestWebhooks_VerifyWithTheLibraryOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	peers(t)
	got := make(chan delivery, 16)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d := delivery{Headers: map[string]string{}, Body: string(body)}
		for name := range r.Header {
			d.Headers[name] = r.Header.Get(name)
		}
		got <- d
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(to.Close)
	h := harness.StartWith(t, harness.Options{
		Args: []string{"--test-seams", "--workflows", write(t, "one", node("a", "core.noop", `{}`, ""), "", `{}`)},
		Env:  []string{"OPENWOP_WEBHOOK_ALLOW_PRIVATE=true"},
	})
	c := h.Client("dev-key")
	post := func(path, body string, want int) (secret, id string) {
		a, err := c.Do(t.Context(), http.MethodPost, path, body)
		require.NoError(t, err)
		require.Equal(t, want, a.Status, "%s", a.Body)
		var hook struct{ WebhookID, Secret string }
		require.NoError(t, a.JSON(&hook))
		return hook.Secret, hook.WebhookID
	}
	next := func() delivery {
		select {
		case d := <-got:
			return d
		case <-time.After(30 * time.Second):
			require.Fail(t, "no delivery")
			return delivery{}
		}
	}
	old, id := post("/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.completed"]}`, to.URL), http.StatusCreated)
	run(t, c, "one")
	first := next()
	fresh, _ := post("/v1/webhooks/"+id+":rotate", `{}`, http.StatusOK)
	run(t, c, "one")
	second := next()

	with := func(d delivery, secret string) delivery { d.Secret = secret; return d }
	forged := with(first, old)
	forged.Body += " "
	verdicts := verify(t, []delivery{
		with(first, old), with(first, "whsec_"+old), with(second, old), with(second, fresh), forged, with(first, fresh),
	})
	for _, v := range verdicts[:4] {
		require.Equal(t, "run.completed", v.Event.Type, v.Error)
	}
	for _, v := range verdicts[4:] {
		require.Contains(t, v.Error, "signature")
	}
	require.NotEqual(t, first.Headers["Webhook-Id"], second.Headers["Webhook-Id"])
}
