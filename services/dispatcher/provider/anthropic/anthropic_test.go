package anthropic_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-ant-hush-0123"

// rig is a provider and the server it speaks to.
type rig struct {
	*anthropic.Provider
	server *double.Server
}

func newRig(t testing.TB, edit func(*anthropic.Config, *double.Options)) rig {
	t.Helper()
	o := double.Options{Key: key}
	c := anthropic.Config{APIKey: key, Timeout: 10 * time.Second}
	if edit != nil {
		edit(&c, &o)
	}
	s := double.New(o)
	c.BaseURL = s.URL()
	p, err := anthropic.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Close()
		p.Close()
	})
	return rig{Provider: p, server: s}
}

// models makes the server know further models.
func models(names ...string) func(*anthropic.Config, *double.Options) {
	return func(_ *anthropic.Config, o *double.Options) { o.Models = names }
}

func ask() provider.Request { return providertest.Ask(double.DefaultModel, "private words") }

const answerSchema = `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z","a"],"additionalProperties":false}`

// way asks for a schema in one of the two ways, or for free text.
type way string

const (
	free   way = "free"
	format way = "format"
	tool   way = "tool"
)

func (w way) ask() provider.Request {
	req := ask()
	if w == free {
		return req
	}
	req.Schema = json.RawMessage(answerSchema)
	if w == tool {
		req.Via = provider.ViaTool
	}
	return req
}

func (r rig) call(t *testing.T, req provider.Request, replies ...double.Reply) (provider.Result, []provider.Delta) {
	t.Helper()
	r.server.Enqueue(replies...)
	return providertest.Answer(t, r, req)
}

// fail calls, wants an *Error, and checks that it repeats nothing it must not.
func (r rig) fail(t *testing.T, req provider.Request, replies ...double.Reply) *provider.Error {
	t.Helper()
	r.server.Enqueue(replies...)
	return providertest.Failure(t, r, req, "hush", "private words", "vendor says")
}

// sent is the body of the last request.
func (r rig) sent(t *testing.T) map[string]any {
	t.Helper()
	all := r.server.Requests()
	var body map[string]any
	require.NoError(t, json.Unmarshal(all[len(all)-1].Body, &body))
	return body
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	for _, w := range []way{free, format, tool} {
		t.Run(string(w), func(t *testing.T) {
			providertest.Run(t, func(t *testing.T) provider.Provider { return newRig(t, nil) }, providertest.Options{
				Request: w.ask(),
				Stalls: func(t *testing.T) provider.Provider {
					r := newRig(t, nil)
					r.server.Enqueue(double.Reply{Pieces: []string{"a", "b", "c"}, End: double.EndStall})
					return r
				},
			})
		})
	}
}

// The strict schema goes with every call that has one, whichever way.
func TestCall_SendsTheStrictSchemaWithEveryCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *anthropic.Config, o *double.Options) { o.RequireSchema = true })
	for _, w := range []way{format, tool} {
		for _, name := range []string{"", "vendor_waybill_x-1"} {
			req := w.ask()
			req.SchemaName = name
			res, pieces := r.call(t, req)
			require.Equal(t, provider.StopClean, res.Stop)
			require.JSONEq(t, `{"a":1,"z":"text"}`, res.Text)
			require.Empty(t, res.ToolCalls)
			require.Greater(t, len(pieces), 1, "it streams either way")
		}
	}
	require.Equal(t, provider.CodeInvalidRequest, r.fail(t, ask()).Code, "without one the server refuses")
}

func TestCall_EmitsOnePieceForEachPieceOfText(t *testing.T) {
	t.Parallel()
	for _, w := range []way{free, format, tool} {
		res, pieces := newRig(t, nil).call(t, w.ask(), double.Reply{
			Pieces: []string{`{"z":"`, "ü", `","a":1}`},
			Model:  "claude-opus-4-6-2026",
		})
		require.Len(t, pieces, 4, "%v: and the end", w)
		require.Equal(t, `{"z":"ü","a":1}`, res.Text)
		require.Equal(t, "claude-opus-4-6-2026", res.Model)
		require.Equal(t, "stop", pieces[3].FinishReason)
	}
}

// A piece waits for none after it: the server holds each back until the one before it
// is here.
func TestCall_EmitsWhileTheAnswerArrives(t *testing.T) {
	t.Parallel()
	for _, w := range []way{free, format, tool} {
		r := newRig(t, nil)
		step := make(chan struct{}, 4)
		step <- struct{}{}
		r.server.Enqueue(double.Reply{Pieces: []string{"1", "2", "3", "4"}, Step: step})
		var got strings.Builder
		res, err := r.Call(t.Context(), w.ask(), func(d provider.Delta) error {
			got.WriteString(d.Text)
			if !d.Last {
				step <- struct{}{}
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, "1234", got.String())
		require.Equal(t, "1234", res.Text)
	}
}

func TestCall_ReturnsWhenCanceledMidway(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.server.Enqueue(double.Reply{Pieces: []string{"a", "b"}, End: double.EndStall})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got string
	_, err := r.Call(ctx, ask(), func(d provider.Delta) error {
		got += d.Text
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, []string{"a", "ab"}, got, "and it does not wait for the end")
}

// What ANTHROPIC_*, tracing and proxy variables say is meant for others.
func TestCall_TakesNothingFromTheEnvironment(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"ANTHROPIC_API_KEY":                            "sk-env",
		"ANTHROPIC_AUTH_TOKEN":                         "token-env",
		"ANTHROPIC_BASE_URL":                           "http://127.0.0.1:1",
		"ANTHROPIC_PROFILE":                            "env",
		"ANTHROPIC_CUSTOM_HEADERS":                     "X-Env: 1",
		"ANTHROPIC_OPEN_TELEMETRY":                     "true",
		"ANTHROPIC_OPEN_TELEMETRY_TRACES_CONTENT_MODE": "content",
		"HTTP_PROXY":                                   "http://127.0.0.1:1",
		"HTTPS_PROXY":                                  "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	r := newRig(t, nil)
	r.call(t, ask())
	h := r.server.Requests()[0].Header
	require.Equal(t, []string{key}, h.Values("X-Api-Key"))
	require.NotContains(t, h, "Authorization")
	require.NotContains(t, h, "X-Env")
	require.NotContains(t, h, "Traceparent")
}

func TestCall_UsesTheTenantsKeyForThatCallAlone(t *testing.T) {
	t.Parallel()
	const theirs = "sk-ant-theirs"
	r := newRig(t, func(c *anthropic.Config, o *double.Options) { o.Keys, c.KeyName = []string{theirs}, "WAYBILL_KEY" })
	req := ask()
	req.Credential = theirs
	r.call(t, req)
	r.call(t, ask())
	require.Equal(t, []string{theirs}, r.server.Requests()[0].Header.Values("X-Api-Key"))
	require.Equal(t, []string{key}, r.server.Requests()[1].Header.Values("X-Api-Key"))
	req.Credential = "sk-ant-hush-wrong"
	require.Contains(t, r.fail(t, req).Message, "the tenant's key for provider anthropic")
	req.Credential = "hush\r\nX-Evil: 1"
	e := r.fail(t, req)
	require.Equal(t, provider.CodeCredentialRequired, e.Code)
	require.Len(t, r.server.Requests(), 3, "no header can carry it")
}

func TestCall_SendsInvocationAndTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for id, want := range map[string]string{
		"":                       "^$",
		"inv:1":                  "^inv:1$",
		"run:ü:1":                `^[0-9a-f]{64}$`,
		"a\r\nX-Evil: 1":         `^[0-9a-f]{64}$`,
		strings.Repeat("x", 300): `^[0-9a-f]{64}$`,
	} {
		req := ask()
		req.InvocationID, req.Traceparent = id, trace
		r.call(t, req)
		all := r.server.Requests()
		h := all[len(all)-1].Header
		require.Regexp(t, want, h.Get("Idempotency-Key"))
		require.Empty(t, h.Get("X-Evil"))
		require.Equal(t, trace, h.Get("Traceparent"))
	}
}

func TestCall_ServesManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *anthropic.Config, o *double.Options) {
		o.Answer = func(rec double.Recorded) double.Reply {
			var body struct {
				Messages []struct{ Content []struct{ Text string } }
			}
			if json.Unmarshal(rec.Body, &body) != nil {
				return double.Reply{Status: 500}
			}
			return double.Reply{Pieces: []string{"re: ", body.Messages[0].Content[0].Text}}
		}
	})
	var g errgroup.Group
	for i := range 64 {
		g.Go(func() error {
			text := strings.Repeat("x", i+1)
			res, err := r.Call(t.Context(), providertest.Ask(double.DefaultModel, text), nil)
			if err == nil && res.Text != "re: "+text {
				t.Errorf("got another call's answer: %q", res.Text)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
}

func TestCall_RefusesModelsThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *anthropic.Config, _ *double.Options) { c.Models = []string{"small", "large"} })
	e := r.fail(t, ask())
	require.Equal(t, provider.CodeModelNotSupported, e.Code)
	require.Contains(t, e.Message, "small, large")
	require.Empty(t, r.server.Requests())
}
