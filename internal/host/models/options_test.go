package models

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/host/tools"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// noKeys removes provider keys from the environment of the test.
func noKeys(t *testing.T) {
	t.Helper()
	for _, v := range vendors {
		for _, name := range []string{
			v.keyEnv,
			"WAYBILL_PROVIDER_" + tools.EnvID(v.id) + "_KEY",
			"WAYBILL_PROVIDER_" + tools.EnvID(v.id) + "_KEY_FILE",
		} {
			t.Setenv(name, "")
		}
	}
}

func modelsOf(providers ...string) *Options {
	return &Options{ProviderFlags: providers, UnknownModels: RefuseUnknown, Directive: "off", RefusalText: RedactRefusals}
}

func TestVendors_AreThereWhenTheirKeyIs(t *testing.T) { //nolint:paralleltest // sets the environment
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("sk-of-a-file\n"), 0o600))
	for name, tc := range map[string]struct {
		env     map[string]string
		flags   []string
		ids     []string
		model   string
		secrets []string
	}{
		"no key": {nil, nil, []string{"sample"}, "sample/sample-1", nil},
		"the vendor's variable": {
			map[string]string{"ANTHROPIC_API_KEY": "sk-ant-0001"},
			nil,
			[]string{"sample", "anthropic"},
			"anthropic/claude-sonnet-5-5",
			[]string{"sk-ant-0001"},
		},
		"our variable first": {
			map[string]string{"OPENAI_API_KEY": "sk-theirs-1", "WAYBILL_PROVIDER_OPENAI_KEY": "sk-ours-001"},
			nil,
			[]string{"sample", "openai"},
			"openai/gpt-6.1-terra",
			[]string{"sk-ours-001"},
		},
		"a file": {
			map[string]string{"WAYBILL_PROVIDER_GEMINI_KEY_FILE": file},
			nil,
			[]string{"sample", "gemini"},
			"gemini/gemini-3.8-flash",
			[]string{"sk-of-a-file"},
		},
		"an address as well": {
			map[string]string{"OPENAI_API_KEY": "sk-theirs-1"},
			[]string{"openai=http://127.0.0.1:9/v1"},
			[]string{"sample", "openai"},
			"openai/gpt-6.1-terra",
			[]string{"sk-theirs-1"},
		},
		"a server": {
			map[string]string{"WAYBILL_PROVIDER_MY_BOX_KEY": "sk-box-0001"},
			[]string{"my-box=http://127.0.0.1:9/v1"},
			[]string{"sample", "my-box"},
			"sample/sample-1",
			[]string{"sk-box-0001"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			noKeys(t)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			o := modelsOf(tc.flags...)
			require.Empty(t, o.Validate())
			require.Equal(t, tc.ids, o.IDs())
			require.Equal(t, tc.ids[1:], o.Keyed())
			require.Equal(t, tc.model, o.DefaultModel)
			var secrets []string
			for _, s := range o.Secrets() {
				secrets = append(secrets, string(s.Value))
			}
			require.Equal(t, tc.secrets, secrets)
			reg, err := o.Open(nil, func(func()) {})
			require.NoError(t, err)
			require.ElementsMatch(t, tc.ids, reg.IDs())
		})
	}
}

func TestProviders_SayWhatIsWrong(t *testing.T) { //nolint:paralleltest // sets the environment
	for name, tc := range map[string]struct {
		env   map[string]string
		flags []string
		says  string
	}{
		"a server without an address": {
			nil,
			[]string{"my-box"},
			`--provider "my-box": want ID=URL, or one of openai, anthropic and gemini`,
		},
		"a vendor without a key": {
			nil,
			[]string{"openai"},
			"--provider openai: there is no key; set OPENAI_API_KEY, WAYBILL_PROVIDER_OPENAI_KEY or WAYBILL_PROVIDER_OPENAI_KEY_FILE, or ",
		},
		"two keys": {
			map[string]string{"WAYBILL_PROVIDER_X_KEY": "sk-hush", "WAYBILL_PROVIDER_X_KEY_FILE": "/none"},
			[]string{"x=http://h/v1"},
			"are both set; keep one of the two",
		},
		"a missing file": {
			map[string]string{"WAYBILL_PROVIDER_X_KEY_FILE": "/none"},
			[]string{"x=http://h/v1"},
			"WAYBILL_PROVIDER_X_KEY_FILE: want the path of a file",
		},
	} {
		t.Run(name, func(t *testing.T) {
			noKeys(t)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			errs := modelsOf(tc.flags...).Validate()
			require.Len(t, errs, 1)
			require.ErrorContains(t, errs[0], tc.says)
			require.NotContains(t, errs[0].Error(), "sk-hush")
		})
	}
	noKeys(t)
	odd := modelsOf()
	odd.RefusalText = "all"
	require.ErrorContains(t, errors.Join(odd.Validate()...), `--refusal-text "all": want redacted or none`)
	chosen := modelsOf()
	chosen.DefaultModel = "gemini/gemini-3.8-flash"
	errs := chosen.Validate()
	require.Len(t, errs, 1, "reported before anything is started")
	require.ErrorContains(t, errs[0], `--default-model "gemini/gemini-3.8-flash": there is no key for gemini; set GEMINI_API_KEY`)
	chosen.ProviderFlags = []string{"gemini=http://127.0.0.1:1"}
	require.Empty(t, chosen.Validate(), "a server of one's own may want none")
	o := modelsOf("openai")
	o.CredentialsDir = t.TempDir()
	require.Empty(t, o.Validate(), "tenants bring the keys")
	require.Equal(t, []string{"openai"}, o.TenantKeyed())
	require.Empty(t, modelsOf("openai=http://h/v1", "x=http://h/v1").TenantKeyed(), "a server of the operator's may want none")
	t.Setenv("OPENAI_API_KEY", "sk-of-the-host")
	require.Empty(t, o.TenantKeyed())
}

// The default model of each vendor is in the catalogue and supports schemas.
func TestVendors_DefaultModelsAreKnown(t *testing.T) {
	t.Parallel()
	for _, v := range vendors {
		e, ok := catalogue.Builtin().Lookup(v.id, v.model)
		require.True(t, ok, v.model)
		require.True(t, slices.Contains(e.Capabilities, "structured-output"), v.model)
		require.Empty(t, e.Retires, v.model)
	}
}

// A host that has stopped keeps no connection to a vendor.
func TestProviders_CloseTheirConnections(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-0001")
	idle, closed := make(chan struct{}), make(chan struct{})
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateIdle:
			close(idle)
		case http.StateClosed:
			close(closed)
		case http.StateNew, http.StateActive, http.StateHijacked:
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	var closers []func()
	reg, err := modelsOf("box="+srv.URL).Open(nil, func(f func()) { closers = append(closers, f) })
	require.NoError(t, err)
	require.Len(t, closers, 2, "the server's and the vendor's")
	p, ok := reg.Lookup("box")
	require.True(t, ok)
	_, err = p.Call(t.Context(), provider.Request{
		Model:     "m",
		MaxTokens: 1,
		Messages:  []provider.Message{{Role: "user", Content: []byte(`"x"`)}},
	}, nil)
	require.Error(t, err)
	<-idle
	for _, f := range closers {
		f()
	}
	<-closed
}
