package models

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// The catalogue override in the documentation is valid and has the described effect.
// jsonOfPage is the first JSON block of a page.
func jsonOfPage(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	require.NoError(t, err)
	_, block, found := strings.Cut(string(b), "```json\n")
	require.True(t, found)
	doc, _, found := strings.Cut(block, "```")
	require.True(t, found)
	return doc
}

func TestDocs_ShowValidPolicies(t *testing.T) {
	t.Parallel()
	p, err := (&Options{PoliciesFile: modelsFile(t, jsonOfPage(t, "models.md"))}).Policies()
	require.NoError(t, err)
	require.Equal(t, modelgate.Restricted, p.Of("acme", "openai").Mode)
	require.Equal(t, modelgate.Required, p.Of("acme", "gemini").Mode)
	require.Equal(t, modelgate.Disabled, p.Of("other", "gemini").Mode)
}

func TestPolicies_ReportsErrorsOfTheFile(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.json"):             "no such file",
		modelsFile(t, `{"tenants":{"a":{"b":{}}}}`):         `"/tenants/a/b": required member missing: mode`,
		modelsFile(t, strings.Repeat(" ", maxPolicies)+"x"): "longer than",
	} {
		_, err := (&Options{PoliciesFile: file}).Policies()
		require.ErrorContains(t, err, "--provider-policies "+file)
		require.ErrorContains(t, err, want)
	}
}

// A rule for a provider that the host does not have would restrict nothing.
func TestPolicies_NameProvidersOfTheHost(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	for provider, want := range map[string]string{
		"opnai":  `at "/tenants/*/opnai": no such provider; did you mean openai? there are sample, house, openai, anthropic, gemini, mock; * is all others`,
		"lab":    `at "/tenants/*/lab": no such provider; there are sample, house`,
		"house":  "",
		"gemini": "", // without a key, too: a tenant may bring one
		"*":      "",
	} {
		o := modelsOf("house=http://h/v1")
		o.PoliciesFile = modelsFile(t, `{"tenants":{"*":{"`+provider+`":{"mode":"disabled"}}}}`)
		err := errors.Join(o.Validate()...)
		if want == "" {
			require.NoError(t, err, provider)
			continue
		}
		require.ErrorContains(t, err, "--provider-policies "+o.PoliciesFile)
		require.ErrorContains(t, err, want)
	}
}

func TestDocs_ShowValidModels(t *testing.T) {
	t.Parallel()
	c, err := LoadCatalogue(modelsFile(t, jsonOfPage(t, "catalogue.md")))
	require.NoError(t, err)
	for _, e := range []string{"lab/house-7b", "openai/gpt-4o"} {
		provider, model, _ := strings.Cut(e, "/")
		got, ok := c.Lookup(provider, model)
		require.True(t, ok, e)
		require.Empty(t, got.Rule)
		require.NotNil(t, got.Prices)
	}
	ruled, ok := c.Lookup("lab", "Qwen/Qwen3-32B")
	require.True(t, ok)
	require.Equal(t, catalogue.StructuredFormat, ruled.StructuredOutput, "the rule of the file speaks before the built-in one")
}

func TestProviderSettings(t *testing.T) { //nolint:paralleltest // sets the environment
	noKeys(t)
	for name, tc := range map[string]struct{ doc, wrong string }{
		"whole": {
			`{"providers":{"box":{"maxConcurrent":4,"timeouts":{"callMs":3600000}},"*":{"requestsPerMinute":60}}}`,
			"",
		},
		"unknown provider": {
			`{"providers":{"bax":{}}}`,
			`at "/providers/bax": no such provider; did you mean box? there are sample, box, openai, anthropic, gemini, mock; * is all others`,
		},
		"unknown member": {`{"providers":{"box":{"maxCalls":4}}}`, `at "/providers/box/maxCalls": unknown member`},
		"no JSON":        {`{`, "--provider-settings "},
	} {
		file := filepath.Join(t.TempDir(), "settings.json")
		require.NoError(t, os.WriteFile(file, []byte(tc.doc), 0o600))
		o := modelsOf("box=http://h/v1")
		o.SettingsFile = file
		err := errors.Join(o.Validate()...)
		if tc.wrong == "" {
			require.NoError(t, err, name)
			all, err := o.Settings()
			require.NoError(t, err)
			require.Equal(t, 4, all.For("box").MaxConcurrent)
			require.Equal(t, 60, all.For("sample").RequestsPerMinute)
			continue
		}
		require.ErrorContains(t, err, tc.wrong, name)
	}
	o := modelsOf()
	o.SettingsFile = filepath.Join(t.TempDir(), "away.json")
	require.ErrorContains(t, errors.Join(o.Validate()...), "away.json: no such file or directory")
}

func modelsFile(t *testing.T, doc string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "models.json")
	require.NoError(t, os.WriteFile(file, []byte(doc), 0o600))
	return file
}
