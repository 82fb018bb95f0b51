package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// before starts a proxy in front of the shared host.
func before(t *testing.T, change func(p *httputil.ReverseProxy) http.Handler) string {
	t.Helper()
	to, err := url.Parse(shared.Host(t).HTTP)
	require.NoError(t, err)
	p := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(change(p))
	t.Cleanup(s.Close)
	return s.URL
}

func TestL7_DoctorNamesTheProblemAndTheFix(t *testing.T) {
	t.Parallel()
	member(t).waiting("approve") // a run in progress, whose stream stays open
	host := shared.Host(t).HTTP
	held := before(t, func(p *httputil.ReverseProxy) http.Handler {
		p.ModifyResponse = func(res *http.Response) error {
			if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				whole, err := io.ReadAll(res.Body) // like a buffering proxy: until the end
				res.Body = io.NopCloser(strings.NewReader(string(whole)))
				return err
			}
			return nil
		}
		return p
	})
	late := before(t, func(p *httputil.ReverseProxy) http.Handler {
		p.ModifyResponse = func(res *http.Response) error {
			res.Header.Set("Date", time.Now().Add(-10*time.Minute).UTC().Format(http.TimeFormat))
			return nil
		}
		return p
	})
	below := before(t, func(p *httputil.ReverseProxy) http.Handler { return http.StripPrefix("/a/b", p) })
	expired := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/openwop" {
			_, _ = io.WriteString(w, `{"protocolVersion":"1.1","implementation":{"name":"x","version":"1"}}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":"key_expired","message":"the key has expired"}`)
	}))
	t.Cleanup(expired.Close)
	for _, tc := range []struct {
		name   string
		url    string
		key    string
		status int
		check  string
		want   string
		fix    string
	}{
		{"a sound host", host, testKey, 0, "stream", "from an open run", ""},
		{"a read model without delay", host, testKey, 0, "store", "up to date with the log", ""},
		{"an unknown key", host, "unknown", 1, "sign-in", "unauthenticated", "WAYBILL_TOKEN"},
		{"an expired key", expired.URL, "old", 1, "sign-in", "key_expired", "new key"},
		{"a proxy that buffers", held, testKey, 1, "stream", "no event of the open run", "buffering"},
		{"a path too long", host + "/wrong", testKey, 1, "base-path", "", "use --url " + host},
		{"a path that is missing", below, testKey, 1, "base-path", "not the API of a host", "base path"},
		{"a host below a path", below + "/a/b", testKey, 0, "reach", "responds", ""},
		{"a clock that is off", late, testKey, 1, "clock", "differ by 10m", "NTP"},
		{"no host there", "http://127.0.0.1:1", testKey, 1, "reach", "cannot be reached", "waybill dev"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u := at(t, tc.url, tc.key)
			r := u.run("doctor", "-o", "json")
			require.Equal(t, tc.status, r.status, r.out)
			var found map[string]any
			for _, c := range document(t, r.out)["checks"].([]any) {
				if c := c.(map[string]any); c["check"] == tc.check {
					found = c
				}
			}
			require.NotNil(t, found, r.out)
			require.Equal(t, map[bool]string{true: "ok", false: "fail"}[tc.status == 0], found["status"], r.out)
			require.Contains(t, found["detail"], tc.want)
			if tc.fix != "" {
				require.Contains(t, found["fix"], tc.fix)
			}
		})
	}
}

// A stand-in host is late: a real one would be faulty.
func TestL7_DoctorReportsEventLag(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		runs         string
		held         time.Duration
		status, want string
	}{
		{"immediately", `[{"runId":"run_1","status":"running","lastSequence":0}]`, 0, "ok", "after it was recorded"},
		{"late", `[{"runId":"run_1","status":"running","lastSequence":0}]`, 3500 * time.Millisecond, "warn", "arrived 3"},
		{"no running run", `[]`, 0, "skipped", "no running run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/.well-known/openwop":
					w.Header()["Date"] = nil // no clock to compare with
					_, _ = io.WriteString(w, `{"protocolVersion":"1.1","implementation":{"name":"x","version":"1"}}`)
				case r.URL.Path == "/v1/runs":
					_, _ = io.WriteString(w, `{"runs":`+tc.runs+`}`)
				case strings.HasSuffix(r.URL.Path, "/events"):
					w.Header().Set("Content-Type", "text/event-stream")
					at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00")
					if r.Header.Get("Last-Event-Id") == "" {
						_, _ = io.WriteString(w, "event: run.started\nid: 0\ndata: {\"eventId\":\"e0\",\"runId\":\"run_1\",\"sequence\":0,\"type\":\"run.started\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"payload\":{}}\n\n")
					} else {
						<-time.After(tc.held + 50*time.Millisecond)
						_, _ = io.WriteString(w, "event: log.appended\nid: 1\ndata: {\"eventId\":\"e1\",\"runId\":\"run_1\",\"sequence\":1,\"type\":\"log.appended\",\"timestamp\":\""+at+"\",\"payload\":{}}\n\n")
					}
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				default:
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			t.Cleanup(host.Close)
			var found map[string]any
			for _, c := range document(t, at(t, host.URL, "key").run("doctor", "-o", "json").out)["checks"].([]any) {
				if c := c.(map[string]any); c["check"] == "event-lag" {
					found = c
				}
			}
			require.Equal(t, tc.status, found["status"], found)
			require.Contains(t, found["detail"], tc.want)
		})
	}
}

// Families are members of the document's root, and only differences are shown.
func TestL10_CapabilitiesOfTwoHostsDiffer(t *testing.T) {
	t.Parallel()
	u := member(t)
	other := before(t, func(p *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			p.ServeHTTP(rec, r)
			doc := strings.Replace(rec.Body.String(), `"clarificationRounds":3`, `"clarificationRounds":7`, 1)
			doc = strings.Replace(doc, `"debugBundle":{"supported":true}`, `"debugBundle":{}`, 1)
			_, _ = io.WriteString(w, strings.Replace(doc, `"supportedEnvelopes":["`, `"supportedEnvelopes":["vendor.acme.note","`, 1))
		})
	})
	r := u.run("capabilities", "diff", "@current", other, "-o", "json")
	require.Equal(t, 1, r.status, r.err)
	require.Equal(t, []any{
		map[string]any{"path": "/debugBundle", "a": nil, "b": map[string]any{}},
		map[string]any{"path": "/debugBundle/supported", "a": true, "b": nil},
		map[string]any{"path": "/limits/clarificationRounds", "a": 3.0, "b": 7.0},
		map[string]any{"path": "/supportedEnvelopes/vendor.acme.note", "a": nil, "b": true},
	}, document(t, r.out)["differences"])
	table := u.run("capabilities", "diff", "@current", other)
	require.Equal(t, 1, table.status)
	require.Regexp(t, `/limits/clarificationRounds +3 +7`, table.out)
	same := u.ok("capabilities", "diff", "@current", shared.Host(t).HTTP)
	require.Equal(t, "no differences\n", same.out)
	require.Equal(t, 5, u.run("capabilities", "diff", "@current", "unknown").status)
}
