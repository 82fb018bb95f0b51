package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// fetch reads an address without a credential.
func fetch(t *testing.T, method, url string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	require.NoError(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, body
}

// painted runs a node whose model answers with an asset, and returns the recorded payload.
func painted(t *testing.T, c *harness.Client, kind, payload string) map[string]any {
	t.Helper()
	program(t, c, "painter", `{"type":"`+kind+`","payload":`+payload+`}`)
	_, events := run(t, c, `{"workflowId":"paints"}`)
	for _, e := range events {
		if e.Type == "artifact.created" {
			var a struct{ Payload map[string]any }
			require.NoError(t, json.Unmarshal(e.Payload, &a))
			return a.Payload
		}
	}
	t.Fatalf("no artifact in %v", names(events))
	return nil
}

func painter(t *testing.T, args ...string) (*harness.Host, *harness.Client) {
	t.Helper()
	c := client(t, testKey) // skips under -short
	h := harness.Start(t, append([]string{"--test-seams", "--api-key", testKey + "=acme:*"}, args...)...)
	c = c.To(h, testKey)
	doc := definition("paints", node("painter", "core.ai.callPrompt", `{"provider":"mock","model":"m","prompt":"paint","envelopeContract":{"accepts":["media.image","media.file"]}}`, "{}"), "", "", "")
	require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/workflows", doc).Status)
	return h, c
}

// OpenWOP envelope contract §17.
func TestMedia_AboveTheCapIsStoredAndServedBySignedURL(t *testing.T) {
	t.Parallel()
	h, c := painter(t, "--max-inline-media-bytes", "1000")
	data := bytes.Repeat([]byte("\x89PNG...."), 200)
	text := base64.StdEncoding.EncodeToString(data)
	payload := painted(t, c, "media.image", fmt.Sprintf(`{"base64":%q,"bytes":%d,"mimeType":"image/png","alt":"a lamp"}`, text, len(data)))
	require.NotContains(t, payload, "base64")
	require.Equal(t, "a lamp", payload["alt"])
	url, ok := payload["url"].(string)
	require.True(t, ok)
	require.True(t, strings.HasPrefix(url, h.HTTP+"/v1/assets/"), url)

	res, body := fetch(t, http.MethodGet, url)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, data, body)
	require.Equal(t, "image/png", res.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
	require.Equal(t, "private, max-age=300", res.Header.Get("Cache-Control"))
	require.Empty(t, res.Header.Get("Content-Disposition"))
	res, body = fetch(t, http.MethodHead, url)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Empty(t, body)
	res, body = fetch(t, http.MethodGet, url, "Range", "bytes=0-3")
	require.Equal(t, http.StatusPartialContent, res.StatusCode)
	require.Equal(t, data[:4], body)
	res, body = fetch(t, http.MethodGet, url, "Range", "bytes=90000-")
	require.Equal(t, http.StatusRequestedRangeNotSatisfiable, res.StatusCode)
	require.Equal(t, fmt.Sprintf("bytes */%d", len(data)), res.Header.Get("Content-Range"))
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.Contains(t, string(body), `"error":"range_not_satisfiable"`)

	for _, bad := range []string{url[:len(url)-1], url + "A", strings.Replace(url, ".r", "r", 1) + "x", h.HTTP + "/v1/assets/", h.HTTP + "/v1/assets/x.y", url + "/.."} {
		res, body := fetch(t, http.MethodGet, bad)
		require.Equal(t, http.StatusNotFound, res.StatusCode, bad)
		require.NotContains(t, string(body), "PNG")
	}
	res, _ = fetch(t, http.MethodPost, url)
	require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)

	token := url[strings.LastIndex(url, "/"):]
	h.Restart()
	res, body = fetch(t, http.MethodGet, h.HTTP+"/v1/assets"+token)
	require.Equal(t, http.StatusOK, res.StatusCode, "as long as the log")
	require.Equal(t, data, body)
	require.NotContains(t, h.Log(), token[1:], "the address is a credential")
}

func TestMedia_AtTheCapStaysInline(t *testing.T) {
	t.Parallel()
	_, c := painter(t, "--max-inline-media-bytes", "8")
	for size, inline := range map[int]bool{8: true, 9: false} {
		text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), size))
		payload := painted(t, c, "media.image", fmt.Sprintf(`{"base64":%q,"bytes":%d}`, text, size))
		_, has := payload["base64"]
		require.Equal(t, inline, has, size)
	}
	var d struct {
		AIProviders struct{ MaxInlineMediaBytes int }
	}
	require.NoError(t, do(t, c, http.MethodGet, wellKnown, "").JSON(&d))
	require.Equal(t, 8, d.AIProviders.MaxInlineMediaBytes)
}

// The signing key can be replaced: URLs signed with the old key stay valid until the operator
// removes it (OpenWOP envelope contract §17, the interrupt recipe).
func TestMedia_KeysOfURLsCanBeReplaced(t *testing.T) {
	t.Parallel()
	h, c := painter(t, "--max-inline-media-bytes", "0")
	paint := func() string {
		return painted(t, c, "media.image", `{"base64":"AAAA","bytes":3}`)["url"].(string)
	}
	status := func(url string) int {
		res, _ := fetch(t, http.MethodGet, h.HTTP+url[strings.Index(url, "/v1/"):])
		return res.StatusCode
	}
	restart := func(keys string) {
		h.Setenv("WAYBILL_ASSET_KEYS=" + keys)
		h.Restart()
		c = c.To(h, testKey)
	}
	second, third := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("2"), 32)), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("3"), 32))
	derived := paint()
	restart("1=host;2=" + second)
	fresh := paint()
	require.Equal(t, http.StatusOK, status(derived), "the old key is still good")
	require.Equal(t, http.StatusOK, status(fresh))

	restart("2=" + second + ";3=" + third)
	require.Equal(t, http.StatusNotFound, status(derived), "its key was removed")
	require.Equal(t, http.StatusOK, status(fresh))

	restart("2=" + third)
	require.Equal(t, http.StatusNotFound, status(fresh), "another key of the same version does not verify it")
	require.NotContains(t, h.Log(), second)
}

func TestMedia_AFileIsSavedUnderItsName(t *testing.T) {
	t.Parallel()
	_, c := painter(t, "--max-inline-media-bytes", "0")
	payload := painted(t, c, "media.file", `{"base64":"`+base64.StdEncoding.EncodeToString([]byte("<script>"))+`","bytes":8,"mimeType":"text/html","name":"../a \"b\".html"}`)
	res, body := fetch(t, http.MethodGet, payload["url"].(string))
	require.Equal(t, "<script>", string(body))
	require.True(t, strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment"))
	require.NotContains(t, res.Header.Get("Content-Disposition"), "..")
	require.Contains(t, res.Header.Get("Content-Security-Policy"), "sandbox")
}

func TestMedia_AForeignURLIsOnlyRecorded(t *testing.T) {
	t.Parallel()
	_, c := painter(t)
	payload := painted(t, c, "media.image", `{"url":"http://127.0.0.1:1/picture.png","bytes":5}`)
	require.Equal(t, "http://127.0.0.1:1/picture.png", payload["url"])
}

// An asset has its own limit, well above that of a payload.
func TestMedia_OfMegabytesIsStoredAndRejectedAboveTheLimit(t *testing.T) {
	t.Parallel()
	_, c := painter(t, "--max-media-base64-bytes", strconv.Itoa(2<<20)) // the mock's scripts have a limit, too
	data := bytes.Repeat([]byte("\x89PNG...."), 3<<20/2/8)
	text := base64.StdEncoding.EncodeToString(data)
	require.Len(t, text, 2<<20)
	envelope := func(more string) string {
		return fmt.Sprintf(`{"type":"media.image","payload":{"base64":"%s%s","bytes":%d}}`, text, more, len(data)+len(more)/4*3)
	}
	program(t, c, "painter", envelope(""))
	_, events := run(t, c, `{"workflowId":"paints"}`)
	var url string
	for _, e := range events {
		require.Less(t, len(e.Payload), 10_000, "the log contains no asset: %s", e.Type)
		if e.Type == "artifact.created" {
			var a struct{ Payload struct{ URL string } }
			require.NoError(t, json.Unmarshal(e.Payload, &a))
			url = a.Payload.URL
		}
	}
	res, body := fetch(t, http.MethodGet, url)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.True(t, bytes.Equal(data, body))

	program(t, c, "painter", envelope("AAAA"), `{"type":"media.image","payload":{"base64":"AAAA","bytes":3}}`)
	_, events = run(t, c, `{"workflowId":"paints"}`)
	require.Equal(t, 1, count(events, "artifact.created"), "the retry has a smaller asset")
	i := slices.IndexFunc(events, func(e harness.Event) bool { return e.Type == "envelope.retry.attempted" })
	require.Contains(t, string(events[i].Payload), "has 2097156 characters, the limit is 2097152")
}

// OpenWOP envelope contract §11: an asset with a secret is not stored, and the model is not blamed.
func TestMedia_WithASecretLeavesTheMarker(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery-staple"
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(file, []byte("vault-key: "+secret+"\n"), 0o600))
	_, c := painter(t, "--secrets-file", file, "--max-inline-media-bytes", "20")
	for name, data := range map[string]string{
		"aligned": secret, "shifted by one": "\xff" + secret, "shifted by two": "\xff\xff" + secret + "\xff", "in another encoding": "key: " + hex.EncodeToString([]byte(secret)),
	} {
		text := base64.StdEncoding.EncodeToString([]byte(data))
		program(t, c, "painter", fmt.Sprintf(`{"type":"media.file","payload":{"base64":%q,"bytes":%d}}`, text, len(data)))
		_, events := run(t, c, `{"workflowId":"paints"}`)
		require.Zero(t, count(events, "envelope.retry.attempted"), name)
		require.Equal(t, "run.completed", events[len(events)-1].Type, name)
		i := slices.IndexFunc(events, func(e harness.Event) bool { return e.Type == "artifact.created" })
		require.Contains(t, string(events[i].Payload), fmt.Sprintf(`"payload":{"base64":"[REDACTED:vault-key]","bytes":%d}`, len(data)), name)
		for _, e := range events {
			require.NotContains(t, string(e.Payload), text[8:24], "%s: %s", name, e.Type)
		}
	}
}

func TestMedia_TheLimitIsConfigurable(t *testing.T) {
	t.Parallel()
	_, c := painter(t, "--max-media-base64-bytes", "16")
	require.Contains(t, painted(t, c, "media.image", `{"base64":"AAAAAAAAAAAAAAAA","bytes":12}`), "base64")
	a := do(t, c, http.MethodPost, seams+"media/put", `{"contentBase64":"AAAAAAAAAAAAAAAAAAAA"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
	require.Contains(t, string(a.Body), "the limit is 16")
}

// OpenWOP envelope contract §17: the asset is not in the chunks either.
func TestMedia_AboveTheCapIsInNoEvent(t *testing.T) {
	t.Parallel()
	_, c := painter(t, "--max-inline-media-bytes", "1000")
	text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("picture "), 500))
	program(t, c, "painter", `{"type":"media.image","payload":{"alt":"a lamp","base64":"`+text+`","bytes":4000}}`)
	_, events := run(t, c, `{"workflowId":"paints"}`)
	require.Positive(t, count(events, "output.chunk"))
	for _, e := range events {
		require.NotContains(t, string(e.Payload), text[:64], e.Type)
		if e.Type == "output.chunk" {
			require.Contains(t, string(e.Payload), "a lamp", "the rest is shown")
		}
	}
}

// OpenWOP envelope contract §23.5.
func TestMediaPut_ServesTheUpload(t *testing.T) {
	t.Parallel()
	h, c := painter(t)
	a := do(t, c, http.MethodPost, seams+"media/put", `{"contentBase64":"aGVsbG8=","contentType":"text/plain"}`)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var got struct {
		URL   string
		Bytes int
	}
	require.NoError(t, a.JSON(&got))
	require.Equal(t, 5, got.Bytes)
	require.True(t, strings.HasPrefix(got.URL, "/v1/host/sample/assets/"), got.URL)
	res, body := fetch(t, http.MethodGet, h.HTTP+got.URL)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "hello", string(body))
	require.Contains(t, res.Header.Get("Content-Type"), "text/plain")
	res, _ = fetch(t, http.MethodGet, h.HTTP+seams+"assets/nothing")
	require.Equal(t, http.StatusNotFound, res.StatusCode)

	a = do(t, c, http.MethodPost, seams+"media/put", `{"contentBase64":"`+strings.Repeat("A", 8<<20+4)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, a.Status)
	var e struct{ Error struct{ Code string } }
	require.NoError(t, a.JSON(&e))
	require.Equal(t, "payload_too_large", e.Error.Code)
}
