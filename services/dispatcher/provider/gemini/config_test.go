package gemini_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/gemini"
)

func TestValidate_AcceptsUsualAccounts(t *testing.T) {
	t.Parallel()
	for _, c := range []gemini.Config{
		{},
		{APIKey: "AIza-1"},
		{
			ID:      "gemini-2",
			BaseURL: "https://models.example.com/google/",
			APIKey:  "AIza-1",
			Models:  []string{"a", "b"},
			Timeout: time.Second,
		},
	} {
		require.NoError(t, c.Validate())
		p, err := gemini.New(c)
		require.NoError(t, err)
		p.Close()
	}
}

func TestNew_HasADefaultID(t *testing.T) {
	t.Parallel()
	p, err := gemini.New(gemini.Config{})
	require.NoError(t, err)
	require.Equal(t, "gemini", p.ID())
}

func TestValidate_NamesFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		config gemini.Config
		want   string
	}{
		{gemini.Config{ID: "My Server"}, `provider My Server: id: "My Server": want lower-case letters`},
		{gemini.Config{BaseURL: "127.0.0.1:11434"}, "baseUrl: "},
		{
			gemini.Config{BaseURL: "ftp://x"},
			`baseUrl: "ftp://x": want http(s)://host[:port][/path], such as https://generativelanguage.googleapis.com`,
		},
		{gemini.Config{BaseURL: "http://x?key=hush"}, `baseUrl: "http://x": must not have a query`},
		{gemini.Config{BaseURL: "http://x/v1beta/"}, `baseUrl: "http://x/v1beta/": must not end in /v1beta`},
		{gemini.Config{BaseURL: "http://jo:hush@x"}, `baseUrl: "http://[REDACTED]@x": must not hold a user`},
		{gemini.Config{APIKey: "hush\n"}, `key: "[REDACTED]": has a space`},
		{gemini.Config{Models: []string{"a", ""}}, `models: "a,": has an empty name`},
		{gemini.Config{Timeout: -time.Second}, `timeout: "-1s": must not be negative`},
	} {
		err := tc.config.Validate()
		require.ErrorContains(t, err, tc.want)
		require.NotContains(t, err.Error(), "hush")
		_, err = gemini.New(tc.config)
		require.ErrorContains(t, err, tc.want)
	}
}

func TestValidate_ReturnsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	err := gemini.Config{ID: "x", BaseURL: "nowhere", Timeout: -1}.Validate()
	require.ErrorContains(t, err, "provider x: baseUrl")
	require.ErrorContains(t, err, "provider x: timeout")
}

func TestConfig_NeverShowsTheKey(t *testing.T) {
	t.Parallel()
	c := gemini.Config{APIKey: "hush"}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", c, c, c, c), "hush")
	p, err := gemini.New(c)
	require.NoError(t, err)
	defer p.Close()
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", p, p, *p), "hush", "nor does the SDK hold it")
}
