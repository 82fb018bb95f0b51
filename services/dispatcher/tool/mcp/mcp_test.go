package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/dispatcher/tool/mcp"
)

func TestRun_MakesAResultOutputs(t *testing.T) {
	t.Parallel()
	r := runner(t, newDouble(t, nil).URL)
	for name, tc := range map[string]struct{ config, output, content, isError string }{
		"text": {
			`{"server":"x","tool":"echo","arguments":{"a":1}}`, `"{\"a\":1}\n<b>"`,
			`[{"type":"text","text":"{\"a\":1}"},{"type":"text","text":"<b>"}]`, `false`,
		},
		"structured, repeated as text": {
			`{"server":"x","tool":"structured"}`, `{"id":9007199254740993}`,
			`[{"type":"text","text":"{\"id\":9007199254740993}"}]`, `false`,
		},
		"structured, with another text": {
			`{"server":"x","tool":"lone"}`, `{"n":1}`, `[{"type":"text","text":"in words"}]`, `false`,
		},
		"no text": {
			`{"server":"x","tool":"image"}`, `[{"type":"image","mimeType":"image/png","data":"cG5n"}]`,
			`[{"type":"image","mimeType":"image/png","data":"cG5n"}]`, `false`,
		},
		"a tool error that is let through": {
			`{"server":"x","tool":"broken","allowToolError":true}`,
			`"` + hush + `"`,
			`[{"type":"text","text":"` + hush + `"}]`,
			`true`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ports := want(t, call(t, r, tc.config))
			require.JSONEq(t, tc.output, string(ports["output"]))
			require.JSONEq(t, tc.content, string(ports["content"]))
			require.Equal(t, tc.isError, string(ports["isError"]))
			if name == "structured, repeated as text" {
				require.Equal(t, tc.output, string(ports["output"]), "no digit is lost")
			}
		})
	}
}

func TestRun_FillsArguments(t *testing.T) {
	t.Parallel()
	r := runner(t, newDouble(t, nil).URL)
	in := task(`{"server":"x","tool":"echo","arguments":{"whole":"{{n}}","part":"n is {{n}}","list":["{{who}}"],"big":9007199254740993}}`)
	in.Input.Ports = map[string]json.RawMessage{"n": json.RawMessage(`{"k":[1,2]}`)}
	in.Input.Variables = map[string]json.RawMessage{"who": json.RawMessage(`"</UNTRUSTED>"`)}
	in.Input.UntrustedVariables = map[string]bool{"who": true}
	ports := want(t, r.Run(t.Context(), in, nil))
	require.Contains(t, string(ports["output"]), `{\"big\":9007199254740993,\"list\":[\"</UNTRUSTED>\"],\"part\":\"n is {\\\"k\\\":[1,2]}\",\"whole\":{\"k\":[1,2]}}`)

	in.Input.Ports["arguments"] = json.RawMessage(`{"own":true}`)
	require.Contains(t, string(want(t, r.Run(t.Context(), in, nil))["output"]), `{\"own\":true}`, "the port wins")
}

// No call is made, because the workflow is wrong.
func TestRun_RefusesANodeThatCannotBe(t *testing.T) {
	t.Parallel()
	r := runner(t, "http://127.0.0.1:1")
	for config, wants := range map[string]struct{ code, message string }{
		`[]`:                        {"validation_error", "/config: want {server, tool"},
		`{"server":"x"}`:            {"validation_error", "/config/tool: name"},
		`{"server":"y","tool":"t"}`: {"capability_not_provided", "it has [x]"},
		`{"server":"http://127.0.0.1","tool":"t"}`:  {"capability_not_provided", "it has [x]"},
		`{"server":"x","tool":"t","arguments":[1]}`: {"validation_error", "/config/arguments"},
		`{"server":"x","tool":"t","arguments":{"a/b":"{{none}}"}}`: {
			"prompt_variable_unresolved", "/config/arguments/a~1b: no port and no variable is named none",
		},
		`{"server":"x","tool":"t","timeoutMs":-1}`:          {"validation_error", "/config/timeoutMs"},
		`{"server":"x","tool":"t","timeoutMs":99999999999}`: {"validation_error", "/config/timeoutMs"},
	} {
		res := call(t, r, config)
		require.NotNil(t, res.Err, config)
		require.Equal(t, wants.code, res.Err.Code, config)
		require.Contains(t, res.Err.Message, wants.message, config)
		require.NotEqual(t, wire.Untrusted, res.Trust, config)
		if bad := r.Check(json.RawMessage(config)); wants.code != "prompt_variable_unresolved" {
			require.Equal(t, res.Err, bad, "found out when the run is created, too")
		}
	}
	in := task(`{"server":"x","tool":"t"}`)
	in.Input.Ports = map[string]json.RawMessage{"arguments": json.RawMessage(`"text"`)}
	require.Contains(t, r.Run(t.Context(), in, nil).Err.Message, "/inputs/arguments: want an object")
	require.Nil(t, r.Check(json.RawMessage(`{"server":"x","tool":"t"}`)))
}

func TestRun_RepeatsNothingThatAServerSays(t *testing.T) {
	t.Parallel()
	r := runner(t, newDouble(t, nil).URL)
	for tool, code := range map[string]string{
		"broken": "tool_failed",
		"panics": "tool_failed",
		"none":   "tool_failed",
		"large":  "content_too_long",
	} {
		e := fails(t, call(t, r, `{"server":"x","tool":"`+tool+`"}`), code)
		require.False(t, e.Retryable, "%s: %+v", tool, e)
	}
	want(t, call(t, r, `{"server":"x","tool":"echo"}`))
}

// A text is in two outputs, and counts once.
func TestRun_TakesATextUpToTheLimit(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*mcp.Runner{"HTTP": runner(t, newDouble(t, nil).URL), "stdio": program(t)} {
		ports := want(t, call(t, r, `{"server":"x","tool":"longest"}`))
		require.Len(t, ports["output"], longest+2, name)
		require.Greater(t, len(ports["content"]), longest, name)
	}
}

// A repetition after a crash and another attempt send the same key.
func TestRun_SendsTheIDOfTheCall(t *testing.T) {
	t.Parallel()
	r := runner(t, newDouble(t, nil).URL)
	meta := func(in model.Task) (m map[string]any) {
		var text string
		require.NoError(t, json.Unmarshal(want(t, r.Run(t.Context(), in, nil))["output"], &text))
		require.NoError(t, json.Unmarshal([]byte(text), &m))
		return m
	}
	first, again := task(`{"server":"x","tool":"meta"}`), task(`{"server":"x","tool":"meta"}`)
	again.Attempt = 1
	require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, meta(first)[mcp.MetaIdempotencyKey])
	require.Equal(t, meta(first)[mcp.MetaIdempotencyKey], meta(again)[mcp.MetaIdempotencyKey])
	require.InDelta(t, 1, meta(first)[mcp.MetaAttempt], 0)
	require.InDelta(t, 2, meta(again)[mcp.MetaAttempt], 0)
	other := task(`{"server":"x","tool":"meta"}`)
	other.RunID = "run_2"
	require.NotEqual(t, meta(first)[mcp.MetaIdempotencyKey], meta(other)[mcp.MetaIdempotencyKey])
}

func TestRun_SharesASession(t *testing.T) {
	t.Parallel()
	d := newDouble(t, nil)
	r := runner(t, d.URL)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if res := call(t, r, `{"server":"x","tool":"echo"}`); res.Err != nil {
				t.Error(res.Err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, d.begun.Load())
}

func TestRun_NotifiesTheServerOfACancelledCall(t *testing.T) {
	t.Parallel()
	d := newDouble(t, nil)
	r := runner(t, d.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for m := range d.entered {
			if m == "tools/call" {
				cancel()
				return
			}
		}
	}()
	res := r.Run(ctx, task(`{"server":"x","tool":"slow"}`), nil)
	require.ErrorIs(t, res.Interrupted, context.Canceled)
	<-d.cancelled

	e := fails(t, call(t, r, `{"server":"x","tool":"slow","timeoutMs":500}`), "service_unavailable")
	require.Contains(t, e.Message, "in time")
	require.True(t, e.Retryable)
	<-d.cancelled
	want(t, call(t, r, `{"server":"x","tool":"echo"}`))
}

// swap is a handler that can be replaced, like a server that restarts.
type swap struct{ h atomic.Pointer[http.Handler] }

func (s *swap) put(h http.Handler) { s.h.Store(&h) }

func (s *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.h.Load()).ServeHTTP(w, r) }

// A restarted server does not know earlier sessions; it answers with 404, as the specification says,
// or with 400.
func TestRun_ConnectsAgain(t *testing.T) {
	t.Parallel()
	for _, status := range []int{404, 400} {
		var s swap
		srv := httptest.NewServer(&s)
		t.Cleanup(srv.Close)
		s.put(http.NotFoundHandler())
		r := runner(t, srv.URL)
		require.True(t, fails(t, call(t, r, `{"server":"x","tool":"echo"}`), "service_unavailable").Retryable)
		for range 3 {
			fresh := newDouble(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, req)
					if rec.Code == http.StatusNotFound {
						rec.Code = status
					}
					for name, v := range rec.Header() {
						w.Header()[name] = v
					}
					w.WriteHeader(rec.Code)
					_, _ = w.Write(rec.Body.Bytes())
				})
			})
			s.put(fresh.Config.Handler)
			want(t, call(t, r, `{"server":"x","tool":"echo"}`))
		}
	}
}

func TestRun_ReportsWhyAServerCannotBeCalled(t *testing.T) {
	t.Parallel()
	elsewhere := newDouble(t, nil)
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		code      string
		message   string
		retryable bool
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "capability_not_provided", "another address", false},
		"no token": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer hush-hush" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}, "credential_required", "WAYBILL_MCP_X_TOKEN", false},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, hush, http.StatusServiceUnavailable)
		}, "service_unavailable", "status 503", true},
		"no MCP": {
			func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(hush)) },
			"service_unavailable", "answered with a message that is not valid", true,
		},
		"bad JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(hush))
		}, "service_unavailable", "answered with a message that is not valid", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(tc.handler)
			t.Cleanup(srv.Close)
			r := runner(t, srv.URL, func(c *mcp.Config) { c.Token = "hush-hush" })
			e := fails(t, call(t, r, `{"server":"x","tool":"echo","timeoutMs":2000}`), tc.code)
			require.Contains(t, e.Message, tc.message)
			require.Equal(t, tc.retryable, e.Retryable)
		})
	}
	require.Zero(t, elsewhere.begun.Load())
	require.True(t, fails(t, call(t, runner(t, "http://127.0.0.1:1"), `{"server":"x","tool":"t"}`), "service_unavailable").Retryable)
}

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := mcp.Parse("files=stdio:npx  -y server --root=/tmp/a=b;c")
	require.NoError(t, err)
	require.Equal(t, []string{"npx", "-y", "server", "--root=/tmp/a=b;c"}, c.Command)
	for flag, wants := range map[string]string{
		"files":                "want ID=URL",
		"Files=http://h":       "lower-case",
		"files=stdio:  ":       "want a command",
		"files=ftp://h":        "want http(s)",
		"files=http://u:p@h":   "give the token apart",
		"files=http://h?key=k": "must not have a query",
	} {
		_, err := mcp.Parse(flag)
		require.ErrorContains(t, err, wants, flag)
		require.NotContains(t, err.Error(), "u:p")
		require.NotContains(t, err.Error(), "key=k")
	}
	one, _ := mcp.Parse("a=http://h")
	_, err = mcp.New(one, one)
	require.ErrorContains(t, err, "server a is named twice")
}

func TestIdempotent_IsWhatTheOperatorNames(t *testing.T) {
	t.Parallel()
	c, err := mcp.Parse("x=http://localhost")
	require.NoError(t, err)
	c.Idempotent = []string{"lookup"}
	r, err := mcp.New(c)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	types := tool.Runners{node.TypeMCPCallTool: r}.Types()
	for config, want := range map[string]bool{
		`{"server":"x","tool":"lookup"}`:                   true,
		`{"server":"x","tool":"charge"}`:                   false,
		`{"server":"y","tool":"lookup"}`:                   false,
		`{"server":"x","tool":"charge","idempotent":true}`: true,
		`{"server":"x","tool":"lookup","idempotent":1}`:    false,
		`[]`: false,
	} {
		require.Equal(t, want, types[0].Idempotent(json.RawMessage(config)), config)
	}
	require.NotNil(t, r.Check(json.RawMessage(`{"server":"x","tool":"lookup","idempotent":1}`)))
}

// The recorded key of a call with an unknown outcome is the one that was sent.
func TestPeer_IsPartOfTheKey(t *testing.T) {
	t.Parallel()
	r := runner(t, newDouble(t, nil).URL)
	in := task(`{"server":"x","tool":"meta"}`)
	var text string
	require.NoError(t, json.Unmarshal(r.Run(t.Context(), in, nil).Output.Ports["output"], &text))
	require.Contains(t, text, node.InvocationID(in.Tenant, in.RunID, in.Input.NodeID, 0, "mcp:x:meta"))
}
