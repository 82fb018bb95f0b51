package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
)

func TestValidate_AcceptsUsualConfigurations(t *testing.T) {
	t.Parallel()
	for _, c := range []anthropic.Config{
		{},
		{APIKey: "sk-ant-1"},
		{
			ID:      "claude-2",
			BaseURL: "https://gateway.example.com/anthropic/",
			APIKey:  "sk-1",
			Models:  []string{"a", "b"},
			Timeout: time.Second,
		},
	} {
		require.NoError(t, c.Validate())
		p, err := anthropic.New(c)
		require.NoError(t, err)
		p.Close()
	}
}

func TestNew_HasADefaultID(t *testing.T) {
	t.Parallel()
	p, err := anthropic.New(anthropic.Config{})
	require.NoError(t, err)
	defer p.Close()
	require.Equal(t, "anthropic", p.ID())
}

func TestValidate_NamesFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		config anthropic.Config
		want   string
	}{
		{anthropic.Config{ID: "My Claude"}, `id: "My Claude": want lower-case letters`},
		{
			anthropic.Config{BaseURL: "api.anthropic.com"},
			`baseUrl: "api.anthropic.com": want http(s)://host[:port][/path], such as https://api.anthropic.com`,
		},
		{anthropic.Config{BaseURL: "ftp://x"}, `baseUrl: "ftp://x": want http(s)`},
		{anthropic.Config{BaseURL: "https://x/v1/"}, `baseUrl: "https://x/v1/": must not end in /v1`},
		{anthropic.Config{BaseURL: "http://x/?key=hush"}, `baseUrl: "http://x/": must not have a query`},
		{anthropic.Config{BaseURL: "http://jo:hush@x"}, `baseUrl: "http://[REDACTED]@x": must not hold a user`},
		{anthropic.Config{BaseURL: "http://jo:hush@x:y"}, `baseUrl: "[REDACTED]"`},
		{anthropic.Config{APIKey: "hush\n"}, `key: "[REDACTED]": has a space`},
		{anthropic.Config{Models: []string{"a", ""}}, `models: "a,": has an empty name`},
		{anthropic.Config{Timeout: -time.Second}, `timeout: "-1s": must not be negative`},
	} {
		err := tc.config.Validate()
		require.ErrorContains(t, err, tc.want)
		require.NotContains(t, err.Error(), "hush")
		_, err = anthropic.New(tc.config)
		require.ErrorContains(t, err, tc.want)
	}
}

func TestValidate_ReturnsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	err := anthropic.Config{ID: "x", BaseURL: "nowhere", Timeout: -1}.Validate()
	require.ErrorContains(t, err, "provider x: baseUrl")
	require.ErrorContains(t, err, "provider x: timeout")
}

func TestConfig_NeverShowsItsKey(t *testing.T) {
	t.Parallel()
	c := anthropic.Config{APIKey: "sk-ant-hush"}
	asJSON, err := json.Marshal(c)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%s %v %+v %#v %x", c, c, c, c, c)+string(asJSON), "hush")
}
