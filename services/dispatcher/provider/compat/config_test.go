package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

func TestValidate_AcceptsUsualServers(t *testing.T) {
	t.Parallel()
	for _, c := range []compat.Config{
		{BaseURL: "http://127.0.0.1:11434/v1"},
		{Dialect: compat.DialectOpenAI, ReasoningEffort: "low"},
		{
			ID:      "vllm-2",
			BaseURL: "https://models.example.com/v1/",
			APIKey:  "sk-1",
			Models:  []string{"a", "b"},
			Timeout: time.Second,
		},
	} {
		require.NoError(t, c.Validate())
		p, err := compat.New(c)
		require.NoError(t, err)
		p.Close()
	}
}

func TestNew_HasADefaultID(t *testing.T) {
	t.Parallel()
	p, err := compat.New(compat.Config{BaseURL: "http://127.0.0.1:1/v1"})
	require.NoError(t, err)
	require.Equal(t, "compat", p.ID())
}

func TestValidate_NamesFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	const ok = "http://127.0.0.1:11434/v1"
	for _, tc := range []struct {
		config compat.Config
		want   string
	}{
		{compat.Config{ID: "My Server", BaseURL: ok}, `id: "My Server": want lower-case letters`},
		{compat.Config{}, `baseUrl: want http(s)://host[:port]/path, such as http://127.0.0.1:11434/v1`},
		{compat.Config{BaseURL: "127.0.0.1:11434"}, "baseUrl: "},
		{compat.Config{BaseURL: "ftp://x/v1"}, `baseUrl: "ftp://x/v1": want http(s)`},
		{compat.Config{BaseURL: "http://x/v1?key=hush"}, `baseUrl: "http://x/v1": must not have a query`},
		{compat.Config{BaseURL: "http://jo:hush@x/v1"}, `baseUrl: "http://[REDACTED]@x/v1": must not hold a user`},
		{compat.Config{BaseURL: "http://jo:hush@x:y/v1"}, `baseUrl: "[REDACTED]"`},
		{compat.Config{BaseURL: ok, APIKey: "hush\n"}, `key: "[REDACTED]": has a space`},
		{compat.Config{BaseURL: ok, Models: []string{"a", ""}}, `models: "a,": has an empty name`},
		{compat.Config{BaseURL: ok, Dialect: "latin"}, `dialect: "latin": want openai, azure-openai, or nothing for a compatible server`},
		{compat.Config{Dialect: compat.DialectOpenAI, BaseURL: "nowhere"}, `provider openai: baseUrl: "nowhere"`},
		{compat.Config{BaseURL: ok, ReasoningEffort: "immense"}, `reasoning_effort: "immense": want one of none, minimal`},
		{compat.Config{BaseURL: ok, Timeout: -time.Second}, `timeout: "-1s": must not be negative`},
	} {
		err := tc.config.Validate()
		require.ErrorContains(t, err, tc.want)
		require.NotContains(t, err.Error(), "hush")
		_, err = compat.New(tc.config)
		require.ErrorContains(t, err, tc.want)
	}
}

func TestValidate_ReturnsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	err := compat.Config{ID: "x", BaseURL: "nowhere", Timeout: -1}.Validate()
	require.ErrorContains(t, err, "provider x: baseUrl")
	require.ErrorContains(t, err, "provider x: timeout")
}

func TestSecret_NeverShowsItsValue(t *testing.T) {
	t.Parallel()
	const key = "sk-hush"
	c := compat.Config{ID: "x", APIKey: key}
	var out bytes.Buffer
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+" "+verb+"\n", c.APIKey, c)
	}
	fmt.Fprintln(&out, provider.Secret(key).String(), provider.Secret(key).GoString())
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", c.APIKey, "config", c)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", c.APIKey, "config", c)
	asJSON, err := json.Marshal(c)
	require.NoError(t, err)
	asYAML, err := yaml.Marshal(c)
	require.NoError(t, err)
	out.Write(asJSON)
	out.Write(asYAML)
	require.NotContains(t, out.String(), "hush")
	require.NotContains(t, out.String(), fmt.Sprintf("%x", "hush"))
	require.Contains(t, out.String(), "[REDACTED]")
	require.Equal(t, key, string(c.APIKey))
}
