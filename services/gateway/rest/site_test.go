package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/rest"
)

func TestDoor_RoutesByPath(t *testing.T) {
	t.Parallel()
	says := func(who string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(who + " " + r.URL.EscapedPath() + " ?" + r.URL.RawQuery))
		}
	}
	fail := func(w http.ResponseWriter, _ *http.Request, err error) {
		http.Error(w, err.Error(), http.StatusNotFound)
	}
	for _, tt := range []struct {
		base, path string
		off        bool
		code       int
		want       string
	}{
		{"", "/v1/runs?limit=1", false, 200, "api /v1/runs ?limit=1"},
		{"", "/console/", false, 200, "console / ?"},
		{"", "/console/runs/run_1", false, 200, "console /runs/run_1 ?"},
		{"", "/consoles", false, 200, "api /consoles ?"},
		{"", "/console", false, 308, ""},
		{"", "/console/", true, 404, ""},
		{"", "/console/config.json", true, 404, ""},
		{"", "/console", true, 404, ""},
		{"/a/b", "/a/b/v1/runs", false, 200, "api /v1/runs ?"},
		{"/a/b", "/a/b/v1/runs/x%2Fy", false, 200, "api /v1/runs/x%2Fy ?"},
		{"/a/b", "/a/b/.well-known/openwop", false, 200, "api /.well-known/openwop ?"},
		{"/a/b", "/a/b/console/x", false, 200, "console /x ?"},
		{"/a/b", "/a/b/healthz", false, 200, "api /healthz ?"},
		{"/a/b", "/readyz", false, 200, "api /readyz ?"},
		{"/a/b", "/v1/runs", false, 404, ""},
		{"/a/b", "/a/bc/v1/runs", false, 404, ""},
		{"/a/b", "/console/", false, 404, ""},
		{"/a/b", "/%61/b/v1/x%2Fy", false, 404, ""},
	} {
		d := &rest.Site{Base: tt.base, API: says("api"), Console: says("console"), Fail: fail}
		if tt.off {
			d.Console = nil
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.path, nil))
		require.Equal(t, tt.code, w.Code, tt)
		if tt.want != "" {
			require.Equal(t, tt.want, w.Body.String(), tt)
		}
		if tt.code == 308 {
			require.Equal(t, tt.base+"/console/", w.Header().Get("Location"))
		}
	}
}

// The root path redirects browsers to the console; other clients get an error.
func TestDoor_RedirectsBrowsersFromTheRootToTheConsole(t *testing.T) {
	t.Parallel()
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	answers := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, tt := range []struct {
		base, method, path, accept string
		off                        bool
		code                       int
	}{
		{"", http.MethodGet, "/", browser, false, http.StatusFound},
		{"/a/b", http.MethodGet, "/a/b", browser, false, http.StatusFound},
		{"/a/b", http.MethodGet, "/a/b/", browser, false, http.StatusFound},
		{"", http.MethodGet, "/", "application/json", false, http.StatusBadRequest},
		{"", http.MethodGet, "/", "*/*", false, http.StatusBadRequest},
		{"", http.MethodPost, "/", browser, false, http.StatusBadRequest},
		{"", http.MethodGet, "/v2/runs", browser, false, http.StatusBadRequest},
		{"", http.MethodGet, "/", browser, true, http.StatusBadRequest},
		{"/a/b", http.MethodGet, "/", browser, false, http.StatusNotFound},
	} {
		d := &rest.Site{
			Base:    tt.base,
			API:     answers(http.StatusBadRequest),
			Console: answers(http.StatusOK),
			Fail: func(w http.ResponseWriter, _ *http.Request, _ error) {
				w.WriteHeader(http.StatusNotFound)
			},
		}
		if tt.off {
			d.Console = nil
		}
		r := httptest.NewRequest(tt.method, tt.path, nil)
		r.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		require.Equal(t, tt.code, w.Code, tt)
		if tt.code == http.StatusFound {
			require.Equal(t, tt.base+"/console/", w.Header().Get("Location"))
		}
	}
}
