package model_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// failingLoop is a loop whose provider box answers with a status, and whose provider sample works.
func failingLoop(t *testing.T, status int, body string, cfg model.Config, rules string) *model.Loop {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status == 0 { // an outage: the connection ends without an answer
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	p, err := compat.New(compat.Config{ID: "box", BaseURL: server.URL})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	reg, err := provider.NewRegistry(p, sample.New(0))
	require.NoError(t, err)
	cfg.MaxAttempts, cfg.Multiplier = 3, 2
	cfg.Defaults = model.Defaults{Provider: "box", Model: "m", MaxTokens: 100}
	deps := model.Deps{Models: reg, Schemas: manyRounds{}, Clock: time.Now, Scrubber: func(string, string, bool) model.Scrubber { return plain{} }}
	if rules != "" {
		deps.Policies, err = model.ParsePolicies([]byte(rules), nil)
		require.NoError(t, err)
	}
	return model.New(cfg, deps)
}

const others = `{"prompt":"p","onError":{"models":["box/m","ghost/g","sample/sample-1","sample/sample-plain"]}}`

func runModel(t *testing.T, l *model.Loop, config string, with func(*model.Task)) model.Result {
	t.Helper()
	task := model.Task{
		Tenant: "acme",
		RunID:  "run_1",
		TypeID: node.TypeCallPrompt,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(config)},
	}
	if with != nil {
		with(&task)
	}
	return l.Run(t.Context(), task, &journal{accept: acceptAll})
}

// The failures after which another model is called, and those after which it would fail too.
func TestOnError_ByFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status         int
		body           string
		next, capacity bool
	}{
		"500":               {500, `{}`, true, false},
		"503":               {503, `{}`, true, false},
		"529":               {529, `{}`, true, false},
		"an outage":         {0, ``, true, false},
		"429":               {429, `{}`, true, false},
		"a used up account": {429, `{"error":{"code":"insufficient_quota"}}`, true, false},
		"402":               {402, `{}`, true, false},
		"a wrong request":   {400, `{}`, false, false},
		"a wrong key":       {401, `{}`, false, false},
		"an unknown model":  {404, `{}`, false, false},
		"a prompt too long": {413, `{}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := runModel(t, failingLoop(t, tc.status, tc.body, model.Config{}, ""), others, nil)
			require.NotNil(t, res.Err)
			require.Equal(t, tc.capacity, res.Err.Capacity)
			if !tc.next {
				require.Nil(t, res.Err.Next)
				return
			}
			require.Equal(t, &wire.NextModel{Index: 2, Provider: "sample", Model: "sample-1"}, res.Err.Next,
				"neither the failed model itself nor one without a provider")
			require.Equal(t, map[string]any{"provider": "box"}, res.Err.Details)
		})
	}
}

// The recorded model is called, and the list continues after it.
func TestOnError_CallsTheRecordedModel(t *testing.T) {
	t.Parallel()
	l := failingLoop(t, 500, `{}`, model.Config{}, "")
	res := runModel(t, l, others, func(task *model.Task) {
		task.Input.Next = &wire.NextModel{Index: 2, Provider: "sample", Model: "sample-1"}
	})
	require.Nil(t, res.Err)
	require.Contains(t, string(res.Drafts[0].Payload), `"provider":"sample","model":"sample-1"`)

	res = runModel(t, l, `{"prompt":"p","onError":{"models":["sample/sample-1","box/n","sample/sample-plain"]}}`, func(task *model.Task) {
		task.Input.Next = &wire.NextModel{Index: 1, Provider: "box", Model: "n"}
	})
	require.Equal(t, &wire.NextModel{Index: 2, Provider: "sample", Model: "sample-plain"}, res.Err.Next)
	res = runModel(t, l, `{"prompt":"p","onError":{"models":["box/n"]}}`, func(task *model.Task) {
		task.Input.Next = &wire.NextModel{Index: 0, Provider: "box", Model: "n"}
	})
	require.Nil(t, res.Err.Next, "the list has ended")
}

// Policies and required capabilities apply to the other models.
func TestOnError_ChecksPoliciesAndCapabilities(t *testing.T) {
	t.Parallel()
	l := failingLoop(t, 500, `{}`, model.Config{}, `{"tenants":{"acme":{"sample":{"mode":"restricted","allowedModels":["sample-plain"]}}}}`)
	require.Equal(t, "sample-plain", runModel(t, l, others, nil).Err.Next.Model)

	l = failingLoop(t, 500, `{}`, model.Config{}, `{"tenants":{"acme":{"sample":{"mode":"disabled"}}}}`)
	require.Nil(t, runModel(t, l, others, nil).Err.Next)

	l = failingLoop(t, 500, `{}`, model.Config{}, "")
	needs := func(id string) func(*model.Task) {
		return func(task *model.Task) { task.Needs = &modelgate.Needs{Required: []string{id}} }
	}
	require.NotNil(t, runModel(t, l, others, needs(modelgate.StructuredOutput)).Err.Next)
	require.Nil(t, runModel(t, l, others, needs("x-host-acme-none")).Err.Next)

	// The gate and the policy evaluate the model that the attempt calls.
	in := node.Input{Config: json.RawMessage(others), Next: &wire.NextModel{Index: 2, Provider: "sample", Model: "sample-1"}}
	active, _ := l.Gate("acme", "", modelgate.Needs{}, in)
	require.Equal(t, modelgate.Model{Provider: "sample", Model: "sample-1"}, active)
}

// The list of the provider's settings applies to nodes without one.
func TestOnError_OfTheProvidersSettings(t *testing.T) {
	t.Parallel()
	all, err := limit.Parse([]byte(`{"providers":{"box":{"retries":3,"onError":{"models":["sample/s"]}}}}`), limit.Host{Providers: &settings.Names{Known: []string{"box", "sample"}}})
	require.NoError(t, err)
	l := failingLoop(t, 500, `{}`, model.Config{Providers: all}, "")
	require.Equal(t, int64(3), runModel(t, l, `{"prompt":"p"}`, nil).Err.Retries)
	require.Equal(t, "s", runModel(t, l, `{"prompt":"p"}`, nil).Err.Next.Model)
	require.Equal(t, "own", runModel(t, l, `{"prompt":"p","onError":{"models":["sample/own"]}}`, nil).Err.Next.Model)
	require.Nil(t, runModel(t, l, `{"prompt":"p","onError":{"models":[]}}`, nil).Err.Next, "none for this node")
}

// A hidden model is recorded by its index, and found by it.
func TestOnError_HidesTheModelWhereFallbacksAreHidden(t *testing.T) {
	t.Parallel()
	l := failingLoop(t, 500, `{}`, model.Config{HidesFallback: func(tenant string) bool { return tenant == "acme" }}, "")
	res := runModel(t, l, others, nil)
	require.Equal(t, &wire.NextModel{Index: 2, Provider: modelgate.Withheld, Model: modelgate.Withheld}, res.Err.Next)
	next := *res.Err.Next
	res = runModel(t, l, others, func(task *model.Task) { task.Input.Next = &next })
	require.Nil(t, res.Err)
	require.NotContains(t, string(res.Drafts[0].Payload), "sample")
	next.Index = 0
	res = runModel(t, l, others, func(task *model.Task) { task.Input.Next = &next })
	require.Empty(t, res.Err.Details, "a hidden model is not named by its failure either")
}

func TestOnError_RejectsWrongLists(t *testing.T) {
	t.Parallel()
	l := failingLoop(t, 500, `{}`, model.Config{}, "")
	for config, want := range map[string]string{
		`{"prompt":"p","onError":{"models":["gpt"]}}`:                                                 `/config/onError/models/0: "gpt": want PROVIDER/MODEL`,
		`{"prompt":"p","onError":{"models":["a/b","a/b"]}}`:                                           `/config/onError/models/1: "a/b" is listed twice`,
		`{"prompt":"p","onError":{"models":["a/1","a/2","a/3","a/4","a/5","a/6","a/7","a/8","a/9"]}}`: "/config/onError/models: 9 models: want 8 at most",
		`{"prompt":"p","onError":{"models":"a/b"}}`:                                                   "models has the wrong type",
	} {
		res := runModel(t, l, config, nil)
		require.NotNil(t, res.Err, config)
		require.Equal(t, "validation_error", res.Err.Code)
		require.Contains(t, res.Err.Message, want)
	}
}
