package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withStatus returns the checks with this status.
func withStatus(checks map[string]string, status string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		if checks[name] == status {
			out = append(out, name)
		}
	}
	return out
}

func TestConformance_FindsNothingAtThisHost(t *testing.T) {
	t.Parallel()
	u := member(t)
	for _, args := range [][]string{{"noop"}, {"fail"}, {"echo", "--set", "text=hello"}, {"corrected"}} {
		if args[0] == "corrected" {
			answers(t, "asks", `{"category":"nonsense"}`, `not JSON`)
		}
		r := u.ok(append([]string{"conformance", "-o", "json", "--workflow"}, args...)...)
		require.Empty(t, withStatus(checks(t, r.out), "fail"))
		require.Empty(t, withStatus(checks(t, r.out), "skipped"), args)
		require.Equal(t, document(t, r.out)["runId"], strings.TrimSpace(strings.TrimPrefix(r.err, "started ")))
	}
}

// Without a named workflow nothing is written: read permission is enough.
func TestConformance_WritesNothingWithoutAWorkflow(t *testing.T) {
	t.Parallel()
	reader := at(t, shared.Host(t).HTTP, readerKey)
	r := reader.ok("conformance", "-o", "json")
	require.NotContains(t, document(t, r.out), "runId")
	got := checks(t, r.out)
	require.Equal(t, "ok", got["errors.unknown-run"])
	require.Equal(t, "skipped", got["runs.created"])
	require.Equal(t, "skipped", got["stream.resume"])
	require.Equal(t, 4, reader.run("conformance", "--workflow", "noop").status, "it may not start runs")

	stranger := at(t, shared.Host(t).HTTP, "unknown-key")
	require.Equal(t, 4, stranger.run("conformance").status)
}

func TestConformance_SkipsWhatNeedsARunThatEnds(t *testing.T) {
	t.Parallel()
	got := checks(t, member(t).ok("conformance", "-o", "json", "--workflow", "approve").out)
	require.Equal(t, []string{
		"bundle.events", "poll.beyond", "poll.repeats", "runs.conditional", "stream.json", "stream.resume", "stream.whole",
	}, withStatus(got, "skipped"))
	require.Empty(t, withStatus(got, "fail"))
	got = checks(t, member(t).ok("conformance", "-o", "json", "--workflow", "wait", "--for", "1s").out)
	require.Equal(t, "skipped", got["stream.whole"], "it has not ended by then")
}

func TestConformance_EndsAsEveryCommandDoes(t *testing.T) {
	t.Parallel()
	u := member(t)
	require.Equal(t, 5, u.run("conformance", "--workflow", "unknown-workflow").status)
	require.Equal(t, 6, u.run("conformance", "--workflow", "echo").status, "an input is missing")
	require.Equal(t, 2, u.run("conformance", "--set", "a=b").status)
	require.Equal(t, 2, u.run("conformance", "--workflow", "noop", "--input", "[]").status)
	require.Equal(t, 7, at(t, "http://127.0.0.1:1", testKey).run("conformance").status)
}

// behind starts a proxy in front of the shared host that changes requests or responses.
func behind(t *testing.T, request func(*http.Request), response func(r *http.Response, body []byte) []byte) string {
	t.Helper()
	host, err := url.Parse(shared.Host(t).HTTP)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(host)
			request(r.Out)
		},
		ModifyResponse: func(r *http.Response) error {
			b, err := io.ReadAll(r.Body)
			b = response(r, b)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
			r.Header.Set("Content-Length", strconv.Itoa(len(b)))
			return err
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

func unchanged(_ *http.Response, body []byte) []byte { return body }

// A host that breaks one rule fails the check of that rule.
func TestConformance_NamesTheBrokenRule(t *testing.T) {
	t.Parallel()
	of := func(r *http.Response, method, path string) bool {
		return r.Request.Method == method && (strings.HasSuffix(r.Request.URL.Path, path) || path == "")
	}
	discovery := func(change func(map[string]any)) func(*http.Response, []byte) []byte {
		return func(r *http.Response, body []byte) []byte {
			if !of(r, "GET", "/openwop") || r.StatusCode != http.StatusOK {
				return body
			}
			var doc map[string]any
			require.NoError(t, json.Unmarshal(body, &doc))
			change(doc)
			out, err := json.Marshal(doc)
			require.NoError(t, err)
			return out
		}
	}
	without := func(header string) func(*http.Response, []byte) []byte {
		return func(r *http.Response, body []byte) []byte {
			r.Header.Del(header)
			return body
		}
	}
	status := func(from, to int) func(*http.Response, []byte) []byte {
		return func(r *http.Response, body []byte) []byte {
			if r.StatusCode == from {
				r.StatusCode = to
			}
			return body
		}
	}
	for _, tc := range []struct {
		name     string
		request  func(*http.Request)
		response func(*http.Response, []byte) []byte
		fails    []string
	}{
		{"a limit is missing", nil, discovery(func(d map[string]any) { delete(d["limits"].(map[string]any), "schemaRounds") }), []string{"discovery.schema"}},
		{"a version has another format", nil, discovery(func(d map[string]any) { d["protocolVersion"] = "1.1.0" }), []string{"discovery.version"}},
		{"a universal kind is missing", nil, discovery(func(d map[string]any) { d["supportedEnvelopes"] = []string{"error"} }), []string{"discovery.kinds"}},
		{"a kind is not served", nil, discovery(func(d map[string]any) {
			d["supportedEnvelopes"] = append(d["supportedEnvelopes"].([]any), "vendor.acme.ghost")
			d["schemaVersions"].(map[string]any)["vendor.acme.ghost"] = 1
		}), []string{"discovery.schemas"}},
		{"discovery has no Cache-Control", nil, without("Cache-Control"), []string{"bundle.events", "discovery.public"}},
		{"an ETag is ignored", func(r *http.Request) { r.Header.Del("If-None-Match") }, unchanged, []string{"discovery.etag", "runs.conditional"}},
		{"a missing credential gets 403", nil, status(401, 403), []string{"auth.required", "auth.unknown-key"}},
		{"an unknown path gets 410", nil, status(404, 410), []string{"discovery.schemas", "errors.unknown-path", "errors.unknown-run"}},
		{"errors have another member", nil, func(_ *http.Response, body []byte) []byte {
			return bytes.Replace(body, []byte(`{"error":"run_not_found",`), []byte(`{"ok":false,"error":"run_not_found",`), 1)
		}, []string{"errors.unknown-run"}},
		{"a trace is not continued", func(r *http.Request) { r.Header.Del("Traceparent") }, unchanged, []string{"http.traceparent"}},
		{"a start gets 200", nil, status(201, 200), []string{"runs.created"}},
		{"keys are ignored", func(r *http.Request) { r.Header.Del("Idempotency-Key") }, unchanged, []string{"idempotency.other-request", "idempotency.same-request"}},
		{"a replay is not marked", nil, without("Openwop-Idempotent-Replay"), []string{"idempotency.same-request"}},
		{"the end is lost", nil, func(r *http.Response, body []byte) []byte {
			if !of(r, "GET", "/events") || r.Header.Get("Content-Type") != "text/event-stream" {
				return body
			}
			at := bytes.LastIndex(bytes.TrimSpace(body), []byte("\n\n"))
			return body[:at+2]
		}, []string{"stream.resume", "stream.whole"}},
		{"Last-Event-ID is ignored", func(r *http.Request) { r.Header.Del("Last-Event-ID") }, unchanged, []string{"stream.resume"}},
		{"an unknown mode is accepted", func(r *http.Request) {
			r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "streamMode=conformance", "streamMode=updates", 1)
		}, unchanged, []string{"stream.mode"}},
		{"an invalid cursor is accepted", func(r *http.Request) { r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "=last", "=0", 1) }, unchanged, []string{"poll.cursor"}},
		{"a cursor is ignored", func(r *http.Request) { r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "=1000000", "=0", 1) }, unchanged, []string{"poll.beyond"}},
		{"sequences have another name", nil, func(_ *http.Response, body []byte) []byte {
			return bytes.ReplaceAll(body, []byte(`"sequence":`), []byte(`"seq":`))
		}, []string{"events.poll"}},
		{"the snapshot differs", nil, func(r *http.Response, body []byte) []byte {
			if strings.Count(r.Request.URL.Path, "/") != 3 {
				return body
			}
			return bytes.Replace(body, []byte(`"startedAt":"20`), []byte(`"startedAt":"19`), 1)
		}, []string{"events.snapshot"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.request == nil {
				tc.request = func(*http.Request) {}
			}
			u := member(t)
			r := u.run("conformance", "-o", "json", "--workflow", "noop", "--url", behind(t, tc.request, tc.response))
			require.Equal(t, 1, r.status, "%s%s", r.out, r.err)
			require.Equal(t, tc.fails, withStatus(checks(t, r.out), "fail"), r.out)
		})
	}
}

// Features that are not advertised are not failures.
func TestConformance_SkipsWhatIsNotAdvertised(t *testing.T) {
	t.Parallel()
	modest := behind(t, func(*http.Request) {}, func(r *http.Response, body []byte) []byte {
		if !strings.HasSuffix(r.Request.URL.Path, "/openwop") || r.StatusCode != http.StatusOK {
			return body
		}
		r.Header.Del("ETag")
		var doc map[string]any
		require.NoError(t, json.Unmarshal(body, &doc))
		for _, family := range []string{"debugBundle", "restTransport"} {
			require.Contains(t, doc, family)
			delete(doc, family)
		}
		doc["supportedEnvelopes"], doc["idempotency"] = []string{}, map[string]any{"supported": false}
		out, err := json.Marshal(doc)
		require.NoError(t, err)
		return out
	})
	got := checks(t, member(t).ok("conformance", "-o", "json", "--workflow", "noop", "--url", modest).out)
	require.Equal(t, []string{
		"bundle.events", "discovery.etag", "discovery.kinds", "discovery.schemas",
		"idempotency.other-request", "idempotency.same-request", "runs.conditional",
	}, withStatus(got, "skipped"))
	require.Empty(t, withStatus(got, "fail"))
}

// A stream of an ended run must be closed; the check does not wait forever.
func TestConformance_FindsAStreamThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	endless := behind(t, func(*http.Request) {}, func(r *http.Response, body []byte) []byte {
		if r.Header.Get("Content-Type") == "text/event-stream" {
			<-r.Request.Context().Done()
		}
		return body
	})
	r := member(t).run("conformance", "--workflow", "noop", "--url", endless, "--timeout", "2s")
	require.Equal(t, 1, r.status, "%s%s", r.out, r.err)
	require.Contains(t, r.out, "stream.whole: the stream of an ended run is not closed: the host cannot be reached: ")
	require.Regexp(t, `bundle\.events +ok`, r.out, "later checks still run")
}
