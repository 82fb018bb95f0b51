package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// keyring has the keys of one tenant, by provider.
type keyring map[string]string

func (k keyring) Key(tenant, id, ref string) (provider.Secret, error) {
	if key, ok := k[id]; ok && tenant == "acme" && ref == "main" {
		if key == "" {
			return "", errors.New("credential acme/mock/main: want one key")
		}
		return provider.Secret(key), nil
	}
	return "", credential.ErrNone
}

func (keyring) Hide(context.Context, string, string, string, string, provider.Secret) error {
	return nil
}

// shy is a keyring that records the keys registered with the redactor, or fails.
type shy struct {
	keyring

	hidden []string
	err    error
}

func (s *shy) Hide(_ context.Context, tenant, runID, id, ref string, key provider.Secret) error {
	s.hidden = append(s.hidden, strings.Join([]string{tenant, runID, id, ref, string(key)}, " "))
	return s.err
}

// The key is registered with the redactor before each call, because it may have changed and a model
// can repeat it. If that fails, no call is made.
func TestRun_HidesAKeyBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]error{"hidden": nil, "not to be hidden": errors.New("redactor: down")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripts := newScripts()
			require.NoError(t, scripts.Program(t.Context(), "acme", "n", []mock.Entry{{Content: "hello"}}))
			s := &spy{Provider: mock.New(scripts)}
			reg, err := provider.NewRegistry(s)
			require.NoError(t, err)
			keys := &shy{keyring: keyring{"mock": "sk-1"}, err: down}
			loop := model.New(model.Config{
				MaxAttempts: 1,
				Multiplier:  2,
				Timeout:     time.Second,
				Defaults:    model.Defaults{Provider: "mock", Model: "m"},
			}, model.Deps{
				Models:   reg,
				Schemas:  schemas{},
				Clock:    time.Now,
				Keys:     keys,
				Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
			})
			res := loop.Run(t.Context(), model.Task{
				Tenant: "acme", RunID: "r", TypeID: node.TypeCallPrompt, CredentialRef: "main",
				Input: node.Input{NodeID: "n", Config: json.RawMessage(`{"prompt":"hi"}`)},
			}, &journal{})
			require.Equal(t, []string{"acme r mock main sk-1"}, keys.hidden)
			require.ErrorIs(t, res.Interrupted, down)
			require.Nil(t, res.Err, "a lost redactor does not fail the node")
			if down != nil {
				require.Empty(t, s.reqs)
				return
			}
			require.Len(t, s.reqs, 1)
		})
	}
}

func TestRun_AsksWithTheTenantsOwnKey(t *testing.T) {
	t.Parallel()
	other := &modelgate.Model{Provider: "mock", Model: "m"}
	for name, tc := range map[string]struct {
		keys     keyring
		ref      string
		fallback *modelgate.Model
		chosen   string
		code     string
		key      string
	}{
		"the host's":                               {keyring{"mock": "sk-1"}, "", nil, "mock", "", ""},
		"the tenant's":                             {keyring{"mock": "sk-1"}, "main", nil, "mock", "", "sk-1"},
		"none of that name":                        {keyring{"mock": "sk-1"}, "spare", nil, "mock", "credential_required", ""},
		"one for another provider":                 {keyring{"openai": "sk-1"}, "main", nil, "mock", "credential_required", ""},
		"one that is none":                         {keyring{"mock": ""}, "main", nil, "mock", "credential_required", ""},
		"a fallback with a key of the tenant's":    {keyring{"mock": "sk-1", "openai": "sk-2"}, "main", other, "openai", "", "sk-1"},
		"a fallback for which the host has to pay": {keyring{"openai": "sk-2"}, "main", other, "openai", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scripts := newScripts()
			require.NoError(t, scripts.Program(t.Context(), "acme", "n", []mock.Entry{{Content: "hello"}}))
			s := &spy{Provider: mock.New(scripts)}
			reg, err := provider.NewRegistry(s)
			require.NoError(t, err)
			loop := model.New(model.Config{
				MaxAttempts: 1,
				Multiplier:  2,
				Timeout:     time.Second,
				Defaults:    model.Defaults{Provider: "mock", Model: "m"},
			}, model.Deps{
				Models:   reg,
				Schemas:  schemas{},
				Clock:    time.Now,
				Keys:     tc.keys,
				Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
			})
			res := loop.Run(t.Context(), model.Task{
				Tenant: "acme", RunID: "r", TypeID: node.TypeCallPrompt, CredentialRef: tc.ref, Fallback: tc.fallback,
				Input: node.Input{
					NodeID:       "n",
					Config:       json.RawMessage(`{"prompt":"hi"}`),
					Configurable: json.RawMessage(`{"ai.provider":"` + tc.chosen + `","ai.model":"m"}`),
				},
			}, &journal{})
			if tc.code != "" {
				require.NotNil(t, res.Err)
				require.Equal(t, tc.code, res.Err.Code)
				require.False(t, res.Err.Retryable)
				require.Empty(t, s.reqs)
				return
			}
			require.Nil(t, res.Err)
			require.Equal(t, tc.key, string(s.reqs[0].Credential))
		})
	}
}

// OpenWOP host contract §5.7, step 4.
func TestSecrets_SaysWhyANodeCannotHaveThem(t *testing.T) {
	t.Parallel()
	reg, err := provider.NewRegistry(mock.New(newScripts()))
	require.NoError(t, err)
	with := func(k model.Keys) *model.Loop {
		return model.New(model.Config{
			BYOK:     []string{"openai", "mock"},
			Defaults: model.Defaults{Provider: "mock", Model: "m"},
		}, model.Deps{Models: reg, Keys: k})
	}
	keys := with(keyring{"openai": "sk-1", "mock": "sk-2"})
	for name, tc := range map[string]struct {
		loop   *model.Loop
		secret pack.Secret
		ref    string
		code   string
	}{
		"there":                    {keys, pack.Secret{ID: "k", Kind: "ai-provider", Provider: "openai"}, "main", ""},
		"of the node's provider":   {keys, pack.Secret{ID: "k", Kind: "ai-provider"}, "main", ""},
		"no ref":                   {keys, pack.Secret{ID: "k", Kind: "ai-provider", Provider: "openai"}, "", "credential_required"},
		"not there":                {keys, pack.Secret{ID: "k", Kind: "ai-provider", Provider: "openai"}, "spare", "credential_required"},
		"of a provider without":    {keys, pack.Secret{ID: "k", Kind: "ai-provider", Provider: "sample"}, "main", "credential_forbidden"},
		"of another kind":          {keys, pack.Secret{ID: "k", Kind: "oauth-token"}, "main", "credential_unavailable"},
		"a host that has no store": {with(nil), pack.Secret{ID: "k", Kind: "ai-provider", Provider: "openai"}, "main", "credential_unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := tc.loop.Secrets(&wire.RunRecord{
				Owner:         wire.Owner{Tenant: "acme"},
				CredentialRef: tc.ref,
			}, []pack.Secret{tc.secret}, node.Input{})
			if tc.code == "" {
				require.Nil(t, bad)
				return
			}
			require.NotNil(t, bad)
			require.Equal(t, tc.code, bad.Code)
			require.NotEmpty(t, bad.Details)
		})
	}
}

// OpenWOP envelope contract §26 case 10: a recorded answer is used, even if its provider or key no
// longer exists.
func TestRun_TakesTheRecordedAnswerWithoutAKeyOrAProvider(t *testing.T) {
	t.Parallel()
	var sent struct{ CorrelationID, EnvelopeID string }
	first := envelope(t, func(req model.AcceptRequest) (model.Outcome, error) {
		require.NoError(t, json.Unmarshal(req.Envelope, &sent))
		return acceptAll(req)
	}, mock.Entry{Content: `{"a":1}`})
	require.Nil(t, first.result.Err)
	reg, err := provider.NewRegistry(mock.New(newScripts()))
	require.NoError(t, err)
	for name, config := range map[string]string{"no key": `{"envelopeType":"vendor.x.ticket"}`, "no provider": `{"envelopeType":"vendor.x.ticket","provider":"ghost","model":"g"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loop := model.New(model.Config{
				MaxAttempts: 3,
				Multiplier:  2,
				Timeout:     time.Second,
				Defaults:    model.Defaults{Provider: "mock", Model: "m"},
			}, model.Deps{
				Models: reg, Schemas: schemas{}, Clock: time.Now, Keys: keyring{},
			})
			res := loop.Run(t.Context(), model.Task{
				Tenant: "acme", RunID: "run_1", TypeID: node.TypeCallPrompt, CredentialRef: "main",
				Input: node.Input{NodeID: "n", Config: json.RawMessage(config)},
				Recorded: map[string]model.Recorded{sent.CorrelationID: {
					Kind:       "vendor.x.ticket",
					EnvelopeID: sent.EnvelopeID,
					Payload:    json.RawMessage(`{"a":1}`),
				}},
			}, &journal{})
			require.Nil(t, res.Err)
			require.NoError(t, res.Interrupted)
			require.JSONEq(t, `{"a":1}`, string(res.Output.Ports["output"]))
		})
	}
}

// OpenWOP host contract §5.5: a call has the same id in every process, and no other call has it.
func TestInvocationID_NamesTheCall(t *testing.T) {
	t.Parallel()
	good, bad := mock.Entry{Content: `{"valid":true}`}, mock.Entry{Content: `{"valid":"no"}`}
	whole := value(t, bad, good)
	require.Len(t, whole.spy.reqs, 2)
	require.NotEqual(t, whole.spy.reqs[0].InvocationID, whole.spy.reqs[1].InvocationID)
	resumed := executeTask(t, model.Task{
		TypeID:  node.TypeStructuredOutput,
		Retries: []model.Retry{{Attempt: 2, Reason: "schema-violation", Detail: "x"}},
		Input:   node.Input{Config: json.RawMessage(valueConfig)},
	}, acceptAll, good)
	require.Equal(t, whole.spy.reqs[1].InvocationID, resumed.spy.reqs[0].InvocationID)
	again := value(t, good)
	require.Equal(t, whole.spy.reqs[0].InvocationID, again.spy.reqs[0].InvocationID)
}
