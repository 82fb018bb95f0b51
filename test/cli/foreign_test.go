package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// core are the routes that every host of the protocol has (OpenWOP host contract §2.2). Lists, other
// versions of a workflow, and the verbs below are left to hosts, or are Waybill's own.
var core = regexp.MustCompile(`^(GET /\.well-known/openwop|GET /v1/openapi\.json|GET /schemas/envelopes/[^/]+` +
	`|GET /v1/workflows/[^/:]+|POST /v1/runs|GET /v1/runs/[^/:]+|GET /v1/runs/[^/:]+/events(/poll)?` +
	`|POST /v1/runs/[^/:]+/cancel|POST /v1/runs:bulk-cancel|POST /v1/runs/[^/:]+/interrupts/[^/]+)$`)

// lacking are the answers of hosts to a path that they do not have.
var lacking = map[string]http.HandlerFunc{
	"an error of the protocol": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, `{"error":"not_found","message":"no such route"}`)
	},
	"a code of its own": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, `{"error":"route_unknown","message":"no such route"}`)
	},
	"a page":    func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
	"no method": func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusMethodNotAllowed, "") },
	"not implemented": func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotImplemented, `<h1>501</h1>`)
	},
	// A router that reads run_1:owner as the id of a run.
	"an unknown run": func(w http.ResponseWriter, r *http.Request) {
		code := "not_found"
		if strings.HasPrefix(r.URL.Path, "/v1/runs/") {
			code = "run_not_found"
		}
		answer(w, http.StatusNotFound, `{"error":"`+code+`","message":"no such thing"}`)
	},
	"a list of another form": func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") == 2 {
			answer(w, http.StatusOK, `{"items":[{"id":"1"}]}`)
			return
		}
		http.NotFound(w, r)
	},
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// foreign is a host that has the core of the protocol and nothing else: the shared host, without the
// other routes, and without Waybill's member of a snapshot.
func foreign(t *testing.T, lacks http.HandlerFunc) string {
	t.Helper()
	to, err := url.Parse(shared.Host(t).HTTP)
	require.NoError(t, err)
	p := httputil.NewSingleHostReverseProxy(to)
	p.FlushInterval = -1
	p.ModifyResponse = func(res *http.Response) error {
		if res.Request.Method != http.MethodGet || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
			return nil
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		var doc map[string]json.RawMessage
		if json.Unmarshal(body, &doc) == nil && (doc["waybill"] != nil || doc["debugBundle"] != nil) {
			delete(doc, "waybill")
			delete(doc, "debugBundle") // discovery offers it
			if body, err = json.Marshal(doc); err != nil {
				return err
			}
		}
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		res.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !core.MatchString(r.Method + " " + r.URL.Path) {
			lacks(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/v1/workflows/") {
			r.URL.RawQuery = "" // it has one version of each
		}
		r.Header.Del("Accept-Encoding")
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// Every command that calls a host either works with any host of the protocol, or says what the host
// does not offer.
func TestForeign_EachCommandAnswersOrSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "wf.json")
	require.NoError(t, os.WriteFile(file, []byte(definition("noop", node("a", "core.noop", "{}", "{}"), "")), 0o600))
	to := foreign(t, lacking["an error of the protocol"])
	u := at(t, to, testKey)
	run := strings.TrimSpace(u.ok("run", "start", "noop", "--wait", "-o", "name").out)
	other := u.start("noop")
	asks := strings.TrimSpace(u.run("run", "start", "approve", "--wait", "-o", "name").out)
	for _, args := range [][]string{
		{"capabilities"},
		{"kind", "list"},
		{"capabilities", "diff", "@current", to},
		{"conformance", "--workflow", "noop"},
		{"doctor"},
		{"run", "get", run},
		{"run", "wait", run},
		{"run", "watch", run},
		{"run", "events", run},
		{"run", "verify", run},
		{"run", "export", run, "--what", "events"},
		{"run", "cancel", u.start("wait")},
		{"run", "cancel", u.start("wait"), u.start("wait"), "--yes"},
		{"interrupt", "show", asks, "gate"},
		{"interrupt", "answer", asks, "gate", "--action", "accept"},
		{"workflow", "get", "noop"},
		{"workflow", "diff", "noop", file},
	} {
		r := u.run(args...)
		require.Zero(t, r.status, "%v: %s%s", args, r.out, r.err)
	}
	for want, all := range map[string][][]string{
		"a list of runs":             {{"run", "list"}, {"run", "get", "@latest"}, {"run", "cancel", "--status", "running", "--yes"}, {"tenant", "erase", "--dry-run"}},
		"forks of runs":              {{"run", "fork", run, "--mode", "branch"}},
		"erasing runs":               {{"run", "delete", run, "--yes"}},
		"legal holds":                {{"run", "hold", "list"}, {"run", "hold", "set", run, "--reason", "r"}, {"run", "hold", "release", run}},
		"pausing runs":               {{"run", "pause", asks}, {"run", "resume", asks}},
		"a comparison of runs":       {{"run", "diff", run, other}},
		"debug bundles":              {{"run", "export", run}},
		"the owner of a run":         {{"run", "owner", run}},
		"a quarantine of runs":       {{"run", "quarantine", "list"}, {"run", "quarantine", "retry", run}, {"run", "quarantine", "end", run}},
		"the model answers of a run": {{"envelope", "explain", run}},
		"a list of open questions":   {{"interrupt", "list"}},
		"a list of workflows":        {{"workflow", "list"}},
		"versions of workflows":      {{"workflow", "versions", "noop"}, {"workflow", "get", "noop", "--version", "9"}, {"workflow", "diff", "noop", "--from", "9"}},
		"deleting workflows":         {{"workflow", "delete", "noop"}},
		"registering workflows":      {{"workflow", "register", file}},
		"a list of webhooks":         {{"webhook", "list"}},
		"a list of deliveries":       {{"webhook", "deliveries", "wh_1"}},
		"the redelivery of events":   {{"webhook", "redeliver", "wh_1", "run_1/0"}},
		"statistics":                 {{"stats"}, {"stats", "--tenants"}},
		"the rotation of secrets":    {{"webhook", "rotate", "wh_1"}},
		"webhooks":                   {{"webhook", "register", "https://hooks.example.com", "--event", "run.completed"}, {"webhook", "delete", "wh_1"}},
		"archiving runs":             {{"run", "archive", run}},
		"checks of workflows":        {{"workflow", "lint", file, "--url", to}},
	} {
		for _, args := range all {
			lacksOffer(t, u, want, args...)
		}
	}
	require.Contains(t, u.run("run", "get", "@latest").err, "give the id of the run")
	require.Equal(t, 5, u.run("run", "owner", "run_none").status, "a run that does not exist is not found")
	require.Equal(t, 1, at(t, to, "unknown").run("doctor").status, "a bad key is found nevertheless")
}

// lacksOffer runs a command that needs what the host does not offer.
func lacksOffer(t *testing.T, u user, feature string, args ...string) {
	t.Helper()
	r := u.run(args...)
	require.Contains(t, r.err, "error: not_offered: ", "%v: %s", args, r.out)
	require.Contains(t, r.err, "this host does not offer "+feature, "%v: %s", args, r.out) // after the item, if there are several
	require.Equal(t, 6, r.status, "%v", args)
}

// Hosts answer in many ways that they do not have a path.
func TestForeign_EachWayToLackAPath(t *testing.T) {
	t.Parallel()
	for name, lacks := range lacking {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := at(t, foreign(t, lacks), testKey)
			run := u.start("noop")
			lacksOffer(t, u, "a list of runs", "run", "list")
			lacksOffer(t, u, "the owner of a run", "run", "owner", run)
			lacksOffer(t, u, "pausing runs", "run", "pause", run)
			lacksOffer(t, u, "a quarantine of runs", "run", "quarantine", "list")
			r := u.run("doctor", "-o", "json")
			require.Zero(t, r.status, r.out)
			for _, c := range document(t, r.out)["checks"].([]any) {
				if c := c.(map[string]any); c["check"] == "sign-in" {
					require.Equal(t, "ok", c["status"], r.out)
				}
			}
		})
	}
}

// A server that is no host is not taken for one that lacks something.
func TestForeign_NoHostIsNotAHostThatLacksSomething(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	r := at(t, srv.URL, testKey).run("run", "list")
	require.Contains(t, r.err, "not_a_host")
}

// The commands of the test are all that have the flag --url.
func TestForeign_CoversEachCommandThatCallsAHost(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("foreign_test.go")
	require.NoError(t, err)
	page, err := os.ReadFile("../../docs/reference/cli.md")
	require.NoError(t, err)
	sections := map[string]string{}
	for _, section := range strings.Split(string(page), "\n## waybill ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for name, text := range sections {
		parent := name
		for parent != "" && !strings.Contains(sections[parent], "--url string") { // a flag of a parent is that of its commands
			parent = parent[:max(strings.LastIndex(parent, " "), 0)]
		}
		switch {
		case parent == "", parent == "context", strings.HasPrefix(parent, "context "): // they call no host
		case name == "run", name == "run hold", name == "run quarantine", name == "interrupt", name == "webhook", name == "kind": // of commands only
		case name == "run import": // it reads archives
		default:
			require.Contains(t, string(own), `"`+strings.Join(strings.Fields(name), `", "`)+`"`, "waybill %s\n%s", name, text)
		}
	}
}
