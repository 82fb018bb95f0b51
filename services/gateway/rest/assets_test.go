package rest_test

import (
	"context"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/rest"
)

// assetAcceptor has assets by token, and records requests.
type assetAcceptor struct {
	acceptorv1.AcceptorClient

	assets map[string]*acceptorv1.GetAssetResponse
	asked  []string
	err    error
}

func (a *assetAcceptor) GetAsset(_ context.Context, req *acceptorv1.GetAssetRequest, _ ...grpc.CallOption) (*acceptorv1.GetAssetResponse, error) {
	a.asked = append(a.asked, req.GetToken())
	if a.err != nil {
		return nil, a.err
	}
	if res, ok := a.assets[req.GetToken()]; ok {
		return res, nil
	}
	return nil, fault.New(fault.NotFound, "there is no such asset")
}

// get sends a REST request; headers are in pairs. The only credential is the token in the path.
func get(t *testing.T, a *assetAcceptor, method, token string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	h := &rest.Assets{Acceptor: a}
	r := httptest.NewRequestWithContext(t.Context(), method, rest.AssetsPrefix+"x", http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	if err := h.Serve(w, r, token); err != nil {
		rest.WriteError(w, slog.New(slog.DiscardHandler), err)
	}
	return w
}

const picture = "\x89PNG-and-the-rest"

func shelf() *assetAcceptor {
	return &assetAcceptor{assets: map[string]*acceptorv1.GetAssetResponse{
		"image": {Data: []byte(picture), MimeType: "image/png", Name: "lamp.png"},
		"file":  {Data: []byte("<script>"), MimeType: "text/html", Name: "a.html", Attachment: true},
		"empty": {MimeType: "text/plain"},
	}}
}

// OpenWOP envelope contract §17, serving. The token is the credential.
func TestServe_ReturnsTheBytesWithTheirHeaders(t *testing.T) {
	t.Parallel()
	w := get(t, shelf(), http.MethodGet, "image")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, picture, w.Body.String())
	for name, want := range map[string]string{
		"Content-Type": "image/png", "X-Content-Type-Options": "nosniff", "Cache-Control": "private, max-age=300",
		"Content-Security-Policy": "default-src 'none'; sandbox", "Referrer-Policy": "no-referrer",
		"Content-Length": "17", "Accept-Ranges": "bytes", "Content-Disposition": "", "Etag": "", "Last-Modified": "",
	} {
		require.Equal(t, want, w.Header().Get(name), name)
	}
}

func TestServe_AnswersHeadWithoutTheBytes(t *testing.T) {
	t.Parallel()
	w := get(t, shelf(), http.MethodHead, "file")
	require.Equal(t, http.StatusOK, w.Code)
	require.Empty(t, w.Body.String())
	require.Equal(t, "8", w.Header().Get("Content-Length"))
	require.Equal(t, "text/html", w.Header().Get("Content-Type"))
	require.Equal(t, "attachment; filename=a.html", w.Header().Get("Content-Disposition"))
	w = get(t, shelf(), http.MethodGet, "empty")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "0", w.Header().Get("Content-Length"))
}

func TestServe_AnswersRanges(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]struct {
		status       int
		body, ranged string
	}{
		"bytes=0-3":   {http.StatusPartialContent, picture[:4], "bytes 0-3/17"},
		"bytes=-4":    {http.StatusPartialContent, "rest", "bytes 13-16/17"},
		"bytes=13-":   {http.StatusPartialContent, "rest", "bytes 13-16/17"},
		"bytes=17-20": {http.StatusRequestedRangeNotSatisfiable, "", "bytes */17"},
		"bytes=x":     {http.StatusRequestedRangeNotSatisfiable, "", ""},
		"chars=0-3":   {http.StatusRequestedRangeNotSatisfiable, "", ""},
	} {
		w := get(t, shelf(), http.MethodGet, "image", "Range", asked)
		require.Equal(t, want.status, w.Code, asked)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), asked)
		if want.status != http.StatusPartialContent {
			require.JSONEq(t, `{"error":"range_not_satisfiable","message":"Range: names no part of the asset, which has 17 bytes; `+
				`want a range such as bytes=0-1023","details":{"sizeBytes":17}}`, w.Body.String(), asked)
			require.Equal(t, "application/json", w.Header().Get("Content-Type"), asked)
			require.Equal(t, want.ranged, w.Header().Get("Content-Range"), asked)
			require.Empty(t, w.Header().Get("Content-Disposition"), asked)
			continue
		}
		require.Equal(t, want.body, w.Body.String(), asked)
		require.Equal(t, want.ranged, w.Header().Get("Content-Range"), asked)
		require.Equal(t, "image/png", w.Header().Get("Content-Type"), asked)
	}
}

// An asset never changes: a condition on its version cannot fail, and no answer is empty because of it.
func TestServe_IgnoresConditionsOnTheVersion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"If-Match", "If-Unmodified-Since"} {
		w := get(t, shelf(), http.MethodGet, "image", name, `"other"`)
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Equal(t, picture, w.Body.String(), name)
	}
}

// A token that is unknown, changed, expired or of another tenant is answered
// alike, to the byte, so that the cause is not revealed.
func TestServe_AnswersEveryInvalidTokenAlike(t *testing.T) {
	t.Parallel()
	a := shelf()
	bodies := map[string]bool{}
	tokens := []string{
		"", "image ", "Image", "imagex", "image/", "../image", "another-tenants", "expired",
		strings.Repeat("A", 5000),
	}
	for _, token := range tokens {
		w := get(t, a, http.MethodGet, token)
		require.Equal(t, http.StatusNotFound, w.Code, token)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"), "a missing asset may be stored later")
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Empty(t, w.Header().Get("WWW-Authenticate"))
		bodies[w.Body.String()] = true
	}
	require.Len(t, bodies, 1)
	require.Equal(t, tokens, a.asked, "each is asked for as it came: the signer alone decides")
}

func TestServe_AcceptsReadsOnly(t *testing.T) {
	t.Parallel()
	for _, method := range []string{
		http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions,
	} {
		a := shelf()
		w := get(t, a, method, "image")
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
		require.Empty(t, a.asked)
	}
}

func TestServe_ReportsAnUnavailableStore(t *testing.T) {
	t.Parallel()
	a := shelf()
	a.err = fault.New(fault.ServiceUnavailable, "the asset cannot be read now; try again")
	w := get(t, a, http.MethodGet, "image")
	require.Equal(t, http.StatusServiceUnavailable, w.Code, "not: not found")
	require.Empty(t, w.Header().Get("Content-Security-Policy"), "nothing of an answer was begun")
}

// Headers contain values of the model, which must not inject headers or invalid types.
func TestServe_DoesNotTrustValuesOfTheModel(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		"image/png":                    "image/png",
		"TEXT/HTML; charset=UTF-8":     "text/html; charset=UTF-8",
		"":                             "application/octet-stream",
		"nonsense":                     "application/octet-stream",
		"text/html\r\nSet-Cookie: a=b": "application/octet-stream",
		"image/png; x":                 "application/octet-stream",
		"a/b/c":                        "application/octet-stream",
	} {
		a := &assetAcceptor{assets: map[string]*acceptorv1.GetAssetResponse{"t": {Data: []byte("x"), MimeType: stored}}}
		require.Equal(t, want, get(t, a, http.MethodGet, "t").Header().Get("Content-Type"), stored)
	}
	for name, want := range map[string]string{
		"a.txt":              "a.txt",
		"":                   "",
		"../../etc/passwd":   "passwd",
		`C:\temp\x.exe`:      "x.exe",
		"a\r\nSet-Cookie: b": "aSet-Cookie: b",
		`a"; filename="b`:    `a"; filename="b`,
		"lämp.png":           "lämp.png",
		"/":                  "",
		"\x00\x7f":           "",
	} {
		a := &assetAcceptor{assets: map[string]*acceptorv1.GetAssetResponse{"t": {
			Data:       []byte("x"),
			Name:       name,
			Attachment: true,
		}}}
		kind, params, err := mime.ParseMediaType(get(t, a, http.MethodGet, "t").Header().Get("Content-Disposition"))
		require.NoError(t, err, name)
		require.Equal(t, "attachment", kind)
		require.Equal(t, want, params["filename"], name)
	}
	a := &assetAcceptor{assets: map[string]*acceptorv1.GetAssetResponse{"t": {Data: []byte("x"), Name: "x.png"}}}
	require.Empty(t, get(t, a, http.MethodGet, "t").Header().Get("Content-Disposition"), "only files are saved")
}
