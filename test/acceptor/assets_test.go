package acceptor

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/test/harness"
)

// file is an envelope with a file of this many bytes.
func file(correlationID string, data []byte) []byte {
	return fmt.Appendf(nil, `{"type":"media.file","schemaVersion":1,"envelopeId":"e","correlationId":%q,"payload":{"base64":%q,"bytes":%d,"mimeType":"a/b"},`+
		`"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`, correlationID, base64.StdEncoding.EncodeToString(data), len(data))
}

func keyFile(t *testing.T, key string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "asset.key")
	require.NoError(t, os.WriteFile(name, []byte(key), 0o600))
	return name
}

const inlineCap = 256 << 10

// Assets too large for the log are stored outside it, and the event has their URL (OpenWOP envelope
// contract §17).
func TestAssets_LargeOnesAreStoredOutsideTheLog(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	args := []string{"--nats", n.url(), "--public-url", "https://waybill.example/", "--asset-key-file", keyFile(t, strings.Repeat("k", 32))}
	h := harness.Serve(t, "acceptor", args...)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	require.NoError(t, opened(t.Context(), client, "r"))
	accept := func(c acceptorv1.AcceptorClient, id string, data []byte) *acceptorv1.AcceptResponse {
		res, err := c.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: file(id, data)})
		require.NoError(t, err)
		require.Contains(t, string(res.GetOutcome()), `"accepted"`)
		return res
	}
	require.Contains(t, string(accept(client, "small", make([]byte, inlineCap)).GetPayload()), "base64")

	data := bytes.Repeat([]byte{1, 2, 3, 4}, 150<<10)
	res := accept(client, "large", data)
	var payload map[string]any
	require.NoError(t, json.Unmarshal(res.GetPayload(), &payload))
	url, _ := payload["url"].(string)
	require.NotContains(t, payload, "base64")
	token, ok := strings.CutPrefix(url, "https://waybill.example/v1/assets/")
	require.True(t, ok, url)

	// Another acceptor with the same key serves it, also after a restart. One with another key
	// returns not found.
	h.Restart()
	other := harness.Serve(t, "acceptor", args...)
	for _, h := range []*harness.Host{h, other} {
		c := acceptorv1.NewAcceptorClient(dial(t, h))
		got, err := c.GetAsset(t.Context(), &acceptorv1.GetAssetRequest{Token: token})
		require.NoError(t, err)
		require.Equal(t, data, got.GetData())
		require.Equal(t, "a/b", got.GetMimeType())
		require.True(t, got.GetAttachment())
		again := accept(c, "large", data)
		require.Equal(t, string(res.GetOutcome()), string(again.GetOutcome()))
		require.Equal(t, string(res.GetPayload()), string(again.GetPayload()))
	}
	stranger := harness.Serve(t, "acceptor", "--nats", n.url(), "--public-url", "https://waybill.example", "--asset-key-file", keyFile(t, strings.Repeat("x", 32)))
	_, err := acceptorv1.NewAcceptorClient(dial(t, stranger)).GetAsset(t.Context(), &acceptorv1.GetAssetRequest{Token: path.Base(url)})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))

	// Without its store nothing is accepted.
	n.stop()
	began := time.Now()
	_, err = client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: file("during-outage", data)})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "%v", err)
	require.Less(t, time.Since(began), soon)
	n.start()
	_, err = emitted(t.Context(), client, "r", file("during-outage", data))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"small": 1, "large": 1, "during-outage": 1}, recorded(t, runs(t, n.url()), "r"))
}

// Readers can follow the URL in the log.
func TestAssets_AreServedOverHTTP(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	h := harness.Serve(t, "acceptor", "--nats", n.url(), "--public-url", "https://waybill.example",
		"--asset-key-file", keyFile(t, strings.Repeat("k", 32)), "--assets-addr", "127.0.0.1:0")
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	require.NoError(t, opened(t.Context(), client, "r"))
	data := bytes.Repeat([]byte{1, 2, 3, 4}, 150<<10)
	res, err := client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: file("c", data)})
	require.NoError(t, err)
	var payload struct{ URL string }
	require.NoError(t, json.Unmarshal(res.GetPayload(), &payload))
	at, ok := strings.CutPrefix(payload.URL, "https://waybill.example")
	require.True(t, ok)
	fetch := func(method, path string) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, h.HTTP+path, http.NoBody)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res, body
	}
	got, body := fetch(http.MethodGet, at)
	require.Equal(t, http.StatusOK, got.StatusCode, "%s", body)
	require.Equal(t, data, body)
	require.Equal(t, "a/b", got.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", got.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "attachment", got.Header.Get("Content-Disposition"))
	got, _ = fetch(http.MethodHead, at)
	require.Equal(t, http.StatusOK, got.StatusCode)
	for _, path := range []string{at + "x", "/v1/assets/", "/v1/assets/a.b", "/v1/assets/../../etc/passwd", "/v1/runs", "/metrics", "/"} {
		got, body = fetch(http.MethodGet, path)
		require.Equal(t, http.StatusNotFound, got.StatusCode, path)
		require.Contains(t, string(body), `"not_found"`, path)
	}
	got, _ = fetch(http.MethodDelete, at)
	require.Equal(t, http.StatusMethodNotAllowed, got.StatusCode)
	require.Equal(t, "GET, HEAD", got.Header.Get("Allow"))

	n.stop()
	got, body = fetch(http.MethodGet, at)
	require.Equal(t, http.StatusServiceUnavailable, got.StatusCode)
	require.NotEmpty(t, got.Header.Get("Retry-After"))
	require.Contains(t, string(body), `"service_unavailable"`)
	require.NotContains(t, h.Log(), path.Base(at), "a token is a credential")
}

func TestAssets_LargeOnesAreRejectedWithoutAStore(t *testing.T) {
	t.Parallel()
	url := broker(t)
	h := harness.Serve(t, "acceptor", "--nats", url)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	require.NoError(t, opened(t.Context(), client, "r"))
	outcome, err := emitted(t.Context(), client, "r", file("c", make([]byte, inlineCap+1)))
	require.NoError(t, err)
	require.Contains(t, outcome, `"invalid"`)
	require.Contains(t, outcome, "no store for larger assets")
	require.Contains(t, outcome, "the limit is 262144")
	require.Empty(t, recorded(t, runs(t, url), "r"))
	_, err = client.GetAsset(t.Context(), &acceptorv1.GetAssetRequest{Token: "a.b"})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

// An embedded log has its own key.
func TestAssets_NeedNoKeyFileWithAnEmbeddedLog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	h := harness.Serve(t, "acceptor", "--data-dir", t.TempDir(), "--public-url", "http://127.0.0.1:8080", "--max-inline-media-bytes", "0")
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	require.NoError(t, opened(t.Context(), client, "r"))
	res, err := client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: file("c", []byte("x"))})
	require.NoError(t, err)
	require.Contains(t, string(res.GetPayload()), `"url":"http://127.0.0.1:8080/v1/assets/`)
	h.Restart()
	again, err := client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: file("c", []byte("x"))})
	if fault.CodeOf(err) == fault.ServiceUnavailable { // the connection may still be the old one
		again, err = client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: file("c", []byte("x"))})
	}
	require.NoError(t, err)
	require.Equal(t, string(res.GetPayload()), string(again.GetPayload()))
}
