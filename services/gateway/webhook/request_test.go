package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/webhook"
)

// OpenWOP host contract §10.5: computed with openssl,
// printf '%s.%s' STAMP BODY | openssl dgst -sha256 -hmac SECRET.
func TestSign_MatchesTheVectors(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		secret string
		unix   int64
		body   string
		want   string
	}{
		{strings.Repeat("a", 64), 0, ``, "f3ff427112b50f8ff40b343df4ddde7d5d4b64556ae6ef2cdeaeb1be89c27e54"},
		{
			strings.Repeat("0123456789abcdef", 4), 1795297352,
			`{"runId":"run_1","type":"run.completed","sequence":5,"event":{}}`,
			"c1ae5e95739cb12b1d1b120dd2f30157213ee64898ca40a9b874cbacc87bb343",
		},
		{
			strings.Repeat("f", 64), 1700000000, `{"text":"ä <&> \\u2028"}`,
			"e3baba80d096b6603a1695c081879a34fd4fe2b7eb0780ebc5bfd1ddd997b5f7",
		},
	} {
		require.Equal(t, "sha256="+v.want, webhook.Sign(v.secret, v.unix, []byte(v.body)))
	}
}

// The key is the secret's text, not the bytes its digits stand for.
func TestSign_UsesTheTextOfTheSecret(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("0f", 32)
	raw, err := hex.DecodeString(secret)
	require.NoError(t, err)
	require.NotEqual(t, webhook.Sign(secret, 1, nil), webhook.Sign(string(raw), 1, nil))
}

// Verified is the receiver of docs/webhooks.md; a test compares the two.
//
// Verified reports whether a request came from the host that issued one of the secrets.
func Verified(r *http.Request, body []byte, now time.Time, secrets ...string) bool {
	stamp := r.Header.Get("X-openwop-Timestamp")
	sent, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return false // replayed
	}
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(stamp + "."))
		mac.Write(body)
		want := []byte("sha256=" + hex.EncodeToString(mac.Sum(nil)))
		for _, name := range []string{"X-openwop-Signature", "Waybill-Previous-Signature"} {
			if hmac.Equal([]byte(r.Header.Get(name)), want) {
				return true
			}
		}
	}
	return false
}

func TestDocs_ShowTheReceiverThatIsTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/webhooks.md")
	require.NoError(t, err)
	_, code, _ := strings.Cut(string(page), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	own, err := os.ReadFile("request_test.go")
	require.NoError(t, err)
	require.NotEmpty(t, code)
	require.Contains(t, string(own), code)
}

func TestDocs_TheReceiverAcceptsTheHostsDeliveries(t *testing.T) {
	t.Parallel()
	now, body := time.Unix(1795297352, 0), []byte(`{"runId":"run_1"}`)
	request := func(header, signature string) *http.Request {
		return &http.Request{Header: http.Header{
			http.CanonicalHeaderKey("X-openwop-Timestamp"): {"1795297352"}, http.CanonicalHeaderKey(header): {signature},
		}}
	}
	good := webhook.Sign("secret", now.Unix(), body)
	require.True(t, Verified(request(webhook.HeaderSignature, good), body, now, "secret"))
	require.True(t, Verified(request(webhook.HeaderSignature, good), body, now, "new", "secret"))
	require.True(t, Verified(request(webhook.HeaderPrevious, good), body, now, "secret"), "during a rotation")
	require.False(t, Verified(request(webhook.HeaderSignature, good), body, now, "other"))
	require.False(t, Verified(request(webhook.HeaderSignature, good), append(body, ' '), now, "secret"))
	require.False(t, Verified(request(webhook.HeaderSignature, good), body, now.Add(6*time.Minute), "secret"), "stale")
	require.False(t, Verified(request(webhook.HeaderSignature, ""), body, now, "secret"))
}
