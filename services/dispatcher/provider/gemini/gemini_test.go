package gemini_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/gemini"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key    = "AIza-hush-0123"
	schema = `{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":["string","null"]}},"required":["z","a"],"additionalProperties":false}`
)

// rig is a provider and the server it speaks to.
type rig struct {
	*gemini.Provider
	server *double.Server
}

func newRig(t testing.TB, edit func(*gemini.Config)) rig {
	t.Helper()
	return newRigOf(t, double.Options{Key: key, Models: models}, edit)
}

// models are those of the tests' server.
var models = []string{
	double.DefaultModel, "gemini-2.0-double", "gemini-2.5-double-image",
	"gemini-2.5-double-preview-tts", "gemini-2.5-flash-image",
}

func newRigOf(t testing.TB, o double.Options, edit func(*gemini.Config)) rig {
	t.Helper()
	s := double.New(o)
	c := gemini.Config{BaseURL: s.URL(), APIKey: key, Timeout: 10 * time.Second}
	if edit != nil {
		edit(&c)
	}
	p, err := gemini.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Close()
		p.Close()
	})
	return rig{Provider: p, server: s}
}

func ask() provider.Request { return providertest.Ask(double.DefaultModel, "private words") }

// askVia is a request that is held to a schema.
func askVia(via provider.SchemaVia) provider.Request {
	r := ask()
	r.Schema, r.Via = json.RawMessage(schema), via
	return r
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
	hidden := []string{"hush", "private words", "vendor says"}
	e := providertest.Failure(t, r, req, hidden...)
	if e.Cause != nil {
		for _, word := range hidden {
			require.NotContains(t, e.Cause.Error(), word)
		}
	}
	return e
}

func (r rig) lastBody(t *testing.T) string {
	t.Helper()
	all := r.server.Requests()
	require.NotEmpty(t, all)
	return string(all[len(all)-1].Body)
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	open := func(t *testing.T) provider.Provider { return newRig(t, nil) }
	for _, req := range []provider.Request{ask(), askVia(provider.ViaFormat), askVia(provider.ViaTool)} {
		providertest.Run(t, open, providertest.Options{
			Request: req,
			Stalls: func(t *testing.T) provider.Provider {
				r := newRig(t, nil)
				r.server.Enqueue(double.Reply{
					Pieces: []string{"a", "b"},
					Calls:  []double.Call{{Name: "answer"}, {Name: "answer"}},
					End:    double.EndStall,
				})
				return r
			},
		})
	}
}

// What GOOGLE_*, GEMINI_* and proxy variables say is meant for others.
func TestCall_TakesNothingFromTheEnvironment(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, value := range map[string]string{
		"GOOGLE_API_KEY":                 "env-key",
		"GEMINI_API_KEY":                 "env-key-2",
		"GOOGLE_GENAI_USE_VERTEXAI":      "true",
		"GOOGLE_GENAI_USE_ENTERPRISE":    "true",
		"GOOGLE_CLOUD_PROJECT":           "env-project",
		"GOOGLE_CLOUD_LOCATION":          "env-place",
		"GOOGLE_GEMINI_BASE_URL":         "http://127.0.0.1:1",
		"GOOGLE_VERTEX_BASE_URL":         "http://127.0.0.1:1",
		"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json",
		"HTTP_PROXY":                     "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	r := newRigOf(t, double.Options{}, func(c *gemini.Config) { c.APIKey, c.BaseURL = "", c.BaseURL+"/" })
	r.call(t, ask())
	rec := r.server.Requests()[0]
	require.Equal(t, "/v1beta/models/"+double.DefaultModel+":streamGenerateContent", rec.Path)
	require.Equal(t, "sse", rec.Query.Get("alt"))
	require.NotContains(t, rec.Header, "X-Goog-Api-Key", "no key is configured")
	require.NotContains(t, rec.Header, "Authorization")
	for name, values := range rec.Header {
		require.NotContains(t, strings.Join(values, " "), "env-", name)
	}
}

// The SDK prints what breaks a stream; of a call nothing may be printed.
func TestCall_PrintsNothing(t *testing.T) { //nolint:paralleltest // redirects the standard logger
	var out bytes.Buffer
	before := log.Writer()      //nolint:forbidigo // the SDK's
	log.SetOutput(&out)         //nolint:forbidigo // the SDK's
	defer log.SetOutput(before) //nolint:forbidigo // the SDK's
	r := newRig(t, nil)
	r.call(t, ask())
	for _, reply := range []double.Reply{
		{Pieces: []string{"vendor says"}, End: double.EndCut},
		{Pieces: []string{"vendor says"}, Cut: &double.Cut{At: 20}},
		{ContentType: "text/event-stream", Raw: "data: {\"vendor says"},
		{Status: 503, Message: "vendor says"},
	} {
		require.Error(t, r.fail(t, ask(), reply))
	}
	require.Empty(t, out.String())
}

func TestCall_EmitsOnePieceForEachEventOfText(t *testing.T) {
	t.Parallel()
	res, pieces := newRig(t, nil).call(t, ask(), double.Reply{
		Pieces: []string{"a", "ü", "c"},
		Model:  "gemini-2.5-double-001",
		Usage:  &double.Usage{Prompt: 9, Candidates: 3, Thoughts: 5, Cached: 4, Total: 17},
	})
	require.Len(t, pieces, 4, "and the end")
	require.Equal(t, "aüc", res.Text)
	require.Equal(t, "gemini-2.5-double-001", res.Model)
	require.Equal(t, provider.Usage{
		InputTokens:     9,
		OutputTokens:    8,
		TotalTokens:     17,
		CacheReadTokens: 4,
		ReasoningTokens: new(5),
		Known:           true,
	}, res.Usage)
	require.Equal(t, "stop", pieces[3].FinishReason)
}

// A piece waits for none after it: the server sends the next one only when this one
// is here.
func TestCall_EmitsWhileTheAnswerArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	step := make(chan struct{}, 2)
	step <- struct{}{}
	r.server.Enqueue(double.Reply{Pieces: []string{"a", "b", "c", "d"}, Step: step})
	var got string
	_, err := r.Call(t.Context(), ask(), func(d provider.Delta) error {
		got += d.Text
		if !d.Last {
			step <- struct{}{}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "abcd", got)
}

func TestCall_UsesTheKeyOfTheCall(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, double.Options{Key: "tenant-hush"}, nil)
	req := ask()
	e := r.fail(t, req)
	require.Equal(t, provider.CodeCredentialRequired, e.Code, "the host's is another")
	req.Credential = "tenant-hush"
	r.call(t, req)
	require.Equal(t, []string{"tenant-hush"}, r.server.Requests()[1].Header.Values("X-Goog-Api-Key"))
	req.Credential = "tenant-hush\r\nX-Evil: 1"
	require.Equal(t, provider.CodeCredentialRequired, r.fail(t, req).Code)
	require.Len(t, r.server.Requests(), 2, "a key that no header carries is not sent")
}

func TestCall_KeepsCallsApart(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, double.Options{Answer: func(rec double.Recorded) double.Reply {
		return double.Reply{Calls: []double.Call{{
			Name: "answer",
			Args: `{"key":"` + rec.Header.Get("X-Goog-Api-Key") + `"}`,
		}}}
	}}, nil)
	var g errgroup.Group
	for i := range 24 {
		g.Go(func() error {
			req := askVia(provider.ViaTool)
			req.Credential = provider.Secret(strings.Repeat("k", i+1))
			res, err := r.Call(t.Context(), req, nil)
			if err == nil {
				require.JSONEq(t, `{"key":"`+string(req.Credential)+`"}`, res.Text)
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
}

func TestCall_RefusesWhatNeedNotBeAsked(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*provider.Request){
		"model_not_supported: model: \"a/../../b\"":              func(r *provider.Request) { r.Model = "a/../../b" },
		"model_not_supported: model: \"a?key=1\"":                func(r *provider.Request) { r.Model = "a?key=1" },
		"model_not_supported: model: \"models/..\"":              func(r *provider.Request) { r.Model = "models/.." },
		"provider_request_invalid: stop: 6 sequences; Gemini ta": func(r *provider.Request) { r.Stop = make([]string, 6) },
	} {
		r := newRig(t, nil)
		req := ask()
		spoil(&req)
		require.ErrorContains(t, r.fail(t, req), want)
		require.Empty(t, r.server.Requests())
	}
}

// A panic of who takes the pieces is not taken for a broken stream.
func TestCall_LetsEmitPanic(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	require.PanicsWithValue(t, "mine", func() {
		_, _ = r.Call(context.Background(), ask(), func(provider.Delta) error { panic("mine") }) //nolint:usetesting // the call does not return
	})
}
