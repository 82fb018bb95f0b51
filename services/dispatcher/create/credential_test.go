package create_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

// vault records the registered credentials.
type vault struct {
	opened []string
	open   int
	err    error
}

func (v *vault) Open(_ context.Context, tenant, runID, ref string) error {
	v.opened = append(v.opened, tenant+" "+strings.Fields(runID)[0]+" "+ref)
	if v.err == nil {
		v.open++
	}
	return v.err
}

func (v *vault) Close(context.Context, string, string) error {
	v.open--
	return nil
}

func withKeys(t *testing.T, v *vault) (*create.Starter, *memory.Log) {
	t.Helper()
	def, problems := workflow.Parse([]byte(documents[0]))
	require.Empty(t, problems)
	log := memory.New()
	return create.New(create.Deps{
		Storage: create.Storage{
			Log:         log,
			Claims:      kvmemory.New(),
			Definitions: shelf{def.ID: &definition.Entry{Def: def, Graph: workflow.Compile(def), Digest: def.Digest()}},
		},
		Redaction: create.Redaction{Redactor: &redactor{}, Secrets: v},
		Checks:    create.Checks{Types: node.Builtin()},
		Models: create.Models{
			Providers:       []string{"openai", "sample"},
			BYOK:            []string{"openai"},
			DefaultProvider: "sample",
		},
		Limits: create.Limits{MaxDuration: time.Hour},
		Clock:  time.Now,
	}), log
}

// OpenWOP host contract §2.3, ai.credentialRef: a name, bound to a provider that takes
// keys, registered before anything of the run is recorded.
func TestStart_RecordsTheNameOfTheTenantsKey(t *testing.T) {
	t.Parallel()
	for _, configurable := range []string{
		`{"ai.provider":"openai","ai.credentialRef":"main"}`,
		`{"ai":{"provider":"openai","credentialRef":"main"}}`,
	} {
		v := &vault{}
		s, log := withKeys(t, v)
		_, err := s.Start(t.Context(), request("plain", "r", with("", configurable)))
		require.NoError(t, err)
		require.Equal(t, []string{"acme r main"}, v.opened)
		require.Zero(t, v.open, "the executing dispatcher registers it")
		rec, err := log.Frames()[0].Record()
		require.NoError(t, err)
		require.Equal(t, "main", rec.CredentialRef)
		require.True(t, rec.Registration().Run)
	}
	v := &vault{}
	s, log := withKeys(t, v)
	_, err := s.Start(t.Context(), request("plain", "r", with("", `{"ai.provider":"openai"}`)))
	require.NoError(t, err)
	require.Empty(t, v.opened)
	rec, err := log.Frames()[0].Record()
	require.NoError(t, err)
	require.False(t, rec.Registration().Run)
}

func TestStart_RefusesCredentialsItCannotUse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		configurable string
		vault        error
		code         fault.Code
	}{
		"a provider that takes none": {
			`{"ai.provider":"sample","ai.credentialRef":"main"}`, nil, fault.CredentialForbidden,
		},
		"the default, which takes none": {`{"ai.credentialRef":"main"}`, nil, fault.CredentialForbidden},
		"a way out": {
			`{"ai.provider":"openai","ai.credentialRef":"../main"}`, nil, fault.ValidationError,
		},
		"a key in place of its name": {
			`{"ai.provider":"openai","ai.credentialRef":"hunter2-hunter2"}`, nil, fault.ValidationError,
		},
		"a redactor that is away": {
			`{"ai.provider":"openai","ai.credentialRef":"main"}`, errors.New("away"),
			fault.ServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &vault{err: tc.vault}
			s, log := withKeys(t, v)
			_, err := s.Start(t.Context(), request("plain", "r", with("", tc.configurable)))
			require.Equal(t, tc.code, fault.CodeOf(err), "%v", err)
			require.NotContains(t, err.Error(), "hunter2")
			require.Empty(t, log.Frames())
			require.Zero(t, v.open, "nothing is left behind")
		})
	}
}

// A rejected start leaves no registration in the redactor, whose memory is limited.
func TestStart_LeavesNoSecretsOfRunsThatAreNotMade(t *testing.T) {
	t.Parallel()
	v := &vault{}
	s, log := withKeys(t, v)
	dedup := func(r *create.Request) { r.Dedup, r.ScopeID = true, "one" }
	key := with("", `{"ai.provider":"openai","ai.credentialRef":"main"}`)
	_, err := s.Start(t.Context(), request("plain", "r1", key, dedup))
	require.NoError(t, err)
	for _, id := range []string{"r2", "r3"} {
		_, err = s.Start(t.Context(), request("plain", id, key, dedup))
		require.Equal(t, fault.RunAlreadyActive, fault.CodeOf(err), "%v", err)
	}
	require.Len(t, log.Frames(), 1)
	require.Len(t, v.opened, 3)
	require.Zero(t, v.open)
}
