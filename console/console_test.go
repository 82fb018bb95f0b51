package console

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const page = `<!doctype html><html><head><meta name="waybill-base" content="/"><script src="./assets/a-1.js"></script></head></html>`

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func tree(t *testing.T) fs.FS {
	t.Helper()
	return fstest.MapFS{
		"index.html.gz":     {Data: zipped(t, page)},
		"index.html.br":     {Data: []byte("brotli page")},
		"assets/a-1.js.br":  {Data: []byte("brotli script")},
		"assets/a-1.js.gz":  {Data: zipped(t, "script")},
		"assets/b-2.css.gz": {Data: zipped(t, "style")},
		"theme.js.gz":       {Data: zipped(t, "theme")},
	}
}

func get(t *testing.T, h http.Handler, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler_ServesTheFormThatTheClientTakes(t *testing.T) {
	t.Parallel()
	h, err := newHandler(tree(t), "")
	require.NoError(t, err)
	for _, tt := range []struct{ path, accept, encoding, mime, cache string }{
		{"/assets/a-1.js", "gzip, deflate, br", "br", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/assets/a-1.js", "gzip;q=0.5, br;q=0", "gzip", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/assets/a-1.js", "", "", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/assets/a-1.js", "*", "br", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/assets/b-2.css", "br, gzip", "gzip", "text/css; charset=utf-8", "public, max-age=31536000, immutable"},
		{"/theme.js", "gzip", "gzip", "text/javascript; charset=utf-8", "no-cache"},
		{"/", "gzip, br", "", "text/html; charset=utf-8", "no-store"},
	} {
		w := get(t, h, tt.path, "Accept-Encoding", tt.accept)
		require.Equal(t, http.StatusOK, w.Code, tt)
		require.Equal(t, tt.encoding, w.Header().Get("Content-Encoding"), tt)
		require.Equal(t, tt.mime, w.Header().Get("Content-Type"), tt)
		require.Equal(t, tt.cache, w.Header().Get("Cache-Control"), tt)
		if tt.encoding == "" && tt.path == "/assets/a-1.js" {
			require.Equal(t, "script", w.Body.String(), "it is unpacked for clients that cannot")
		}
	}
}

func TestHandler_GivesRoutesTheFirstPage(t *testing.T) {
	t.Parallel()
	h, err := newHandler(tree(t), "/a/b")
	require.NoError(t, err)
	for _, path := range []string{"/", "/index.html", "/runs", "/runs/run_01", "/runs/a.b/envelopes/x"} {
		w := get(t, h, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Body.String(), `<meta name="waybill-base" content="/a/b/"`, path)
		require.Contains(t, w.Body.String(), `src="/a/b/console/assets/a-1.js"`, path)
	}
	for _, path := range []string{"/assets/gone-3.js", "/assets/", "/favicon.ico", "/../console.go.json"} {
		require.Equal(t, http.StatusNotFound, get(t, h, path).Code, path)
	}
}

func TestHandler_AnswersNotModified(t *testing.T) {
	t.Parallel()
	h, err := newHandler(tree(t), "")
	require.NoError(t, err)
	first := get(t, h, "/theme.js", "Accept-Encoding", "gzip")
	again := get(t, h, "/theme.js", "Accept-Encoding", "gzip", "If-None-Match", first.Header().Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Zero(t, again.Body.Len())
	plain := get(t, h, "/theme.js")
	require.NotEqual(t, first.Header().Get("ETag"), plain.Header().Get("ETag"), "each form has a tag of its own")
	part := get(t, h, "/theme.js", "Accept-Encoding", "gzip", "Range", "bytes=0-1")
	require.Equal(t, http.StatusOK, part.Code)
	require.Equal(t, first.Body.Bytes(), part.Body.Bytes())
}

// C1a: the policy is held by tests in a browser; here that each answer has it.
func TestHandler_HasThePolicyOnEveryAnswer(t *testing.T) {
	t.Parallel()
	h, err := New("")
	require.NoError(t, err)
	for _, path := range []string{"/", "/runs", "/assets/none.js"} {
		w := get(t, h, path)
		require.Equal(t, policy, w.Header().Get("Content-Security-Policy"), path)
		require.Equal(t, "no-referrer", w.Header().Get("Referrer-Policy"), path)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, policy, w.Header().Get("Content-Security-Policy"))
}

func TestNew_RefusesATreeItCannotServe(t *testing.T) {
	t.Parallel()
	for says, files := range map[string]fstest.MapFS{
		"there is no index.html":     {"a.js": {}},
		"index.html lacks":           {"index.html": {Data: []byte("<html></html>")}},
		"there is no form of it but": {"index.html": {Data: []byte(page)}, "a.js.br": {}},
		"a.js: unexpected EOF":       {"index.html": {Data: []byte(page)}, "a.js.gz": {Data: []byte("none")}},
	} {
		_, err := newHandler(files, "")
		require.ErrorContains(t, err, says)
	}
}

func TestDist_HoldsNoSourceMaps(t *testing.T) {
	t.Parallel()
	require.NoError(t, fs.WalkDir(dist, ".", func(name string, _ fs.DirEntry, err error) error {
		require.NotContains(t, strings.ToLower(name), ".map")
		return err
	}))
}
