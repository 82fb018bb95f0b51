package prompt_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// versions are templates of one id, whose texts are their versions.
func versions(t testing.TB, id string, list ...string) []*prompt.Template {
	t.Helper()
	var out []*prompt.Template
	for _, v := range list {
		out = append(out, parse(t, fmt.Sprintf(`{"templateId":%q,"version":%q,"kind":"user","text":%q}`, id, v, v)))
	}
	return out
}

func library(t testing.TB, templates ...*prompt.Template) *prompt.Library {
	t.Helper()
	l, err := prompt.NewLibrary(templates...)
	require.NoError(t, err)
	return l
}

func TestFind_TakesTheNewestReleaseUnlessAVersionIsNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		there     []string
		ref, want string
	}{
		"the newest":                                {[]string{"1.9.0", "1.10.0", "1.2.0"}, "prompt:w", "1.10.0"},
		"no version that leads up to one":           {[]string{"1.0.0", "2.0.0-rc.1"}, "prompt:w", "1.0.0"},
		"unless there is nothing else":              {[]string{"1.0.0-rc.1", "1.0.0-rc.2"}, "prompt:w", "1.0.0-rc.2"},
		"the named one":                             {[]string{"1.0.0", "2.0.0"}, "prompt:w@1.0.0", "1.0.0"},
		"the named one, also if it leads up":        {[]string{"1.0.0", "2.0.0-rc.1"}, "prompt:w@2.0.0-rc.1", "2.0.0-rc.1"},
		"builds are distinguished by their letters": {[]string{"1.0.0+a", "1.0.0+b"}, "prompt:w", "1.0.0+b"},
	} {
		r, wrong := prompt.ParseName(tc.ref)
		require.Empty(t, wrong)
		got, err := library(t, versions(t, "w", tc.there...)...).Find(r)
		require.Nil(t, err, name)
		require.Equal(t, tc.want, got.Version, name)
	}
}

func TestFind_SaysWhatThereIs(t *testing.T) {
	t.Parallel()
	l := library(t, versions(t, "w", "1.0.0", "2.0.0")...)
	for ref, says := range map[string]string{
		`"prompt:gone"`:                           `no prompt template "gone"`,
		`"prompt:w@3.0.0"`:                        "there are [2.0.0 1.0.0]",
		`{"templateId":"w","libraryId":"acme"}`:   "of the library host, not of acme",
		`{"templateId":"w","version":"1.0.0+x"}`:  "no version 1.0.0+x",
		`{"templateId":"ghost","libraryId":"ho"}`: `no prompt template "ghost"`,
	} {
		r, wrong := prompt.ParseRef(json.RawMessage(ref))
		require.Empty(t, wrong)
		_, err := l.Find(r)
		require.NotNil(t, err, ref)
		require.Equal(t, fault.TemplateNotFound, err.Code)
		require.Contains(t, err.Message, says)
	}
	_, err := (*prompt.Library)(nil).Find(prompt.Ref{ID: "w"})
	require.Equal(t, fault.TemplateNotFound, err.Code)
}

func TestNewLibrary_ReportsAllCollisions(t *testing.T) {
	t.Parallel()
	theirs := versions(t, "w", "3.0.0")[0]
	theirs.Library = "vendor.acme.desk"
	_, err := prompt.NewLibrary(append(versions(t, "w", "1.0.0", "1.0.0"), theirs)...)
	require.ErrorContains(t, err, "version 1.0.0 is there twice")
	require.ErrorContains(t, err, "vendor.acme.desk")

	l, err := (*prompt.Library)(nil).With(prompt.Conformance()...)
	require.NoError(t, err)
	require.False(t, l.Empty())
	_, err = l.With(prompt.Conformance()...)
	require.Error(t, err)
}

const (
	role = `{"templateId":"role","version":"1.0.0","kind":"system","text":"You are {{who}}.","variables":[{"name":"who","type":"string","required":false,"defaultValue":"a clerk"}]}`
	shot = `{"templateId":"shot","version":"1.0.0","kind":"few-shot","text":"Q: 1+1 A: 2"}`
	hint = `{"templateId":"hint","version":"1.0.0","kind":"schema-hint","text":"Answer in JSON."}`
)

func shelf(t testing.TB) *prompt.Library {
	t.Helper()
	return library(t, parse(t, writer), parse(t, role), parse(t, shot), parse(t, hint))
}

func TestPlan_OrdersSystemUserOthers(t *testing.T) {
	t.Parallel()
	for config, want := range map[string][]string{
		`{}`:                                nil,
		`{"system":"x","prompt":"y"}`:       nil,
		`{"systemPromptRef":"prompt:role"}`: {"role"},
		`{"additionalPromptRefs":["prompt:shot","prompt:hint"],"userPromptRef":"prompt:writer@1.2.0","systemPromptRef":{"templateId":"role"}}`: {"role", "writer", "shot", "hint"},
		`{"promptId":"writer"}`:                         {"writer"},
		`{"promptId":"prompt:writer"}`:                  {"writer"},
		`{"promptId":{"templateId":"writer"}}`:          {"writer"},
		`{"promptId":"Of another host/1"}`:              nil,
		`{"prompt\u0049d":"writer"}`:                    {"writer"},
		`{"userPrompt\u0052ef":"prompt:writer"}`:        {"writer"},
		`{"system":"","systemPromptRef":"prompt:role"}`: {"role"},
	} {
		parts, wrong := shelf(t).Plan(json.RawMessage(config))
		require.Empty(t, wrong, config)
		var got []string
		for _, p := range parts {
			got = append(got, p.Template.ID)
		}
		require.Equal(t, want, got, config)
	}
}

func TestPlan_RefusesWithThePlace(t *testing.T) {
	t.Parallel()
	for config, want := range map[string][]prompt.Problem{
		`{"systemPromptRef":"prompt:gone"}`: {{
			Path: "/systemPromptRef",
			Code: fault.TemplateNotFound,
		}},
		`{"promptId":"gone"}`:                             {{Path: "/promptId", Code: fault.TemplateNotFound}},
		`{"userPromptRef":"writer"}`:                      {{Path: "/userPromptRef", Code: fault.ValidationError}},
		`{"userPromptRef":null}`:                          {{Path: "/userPromptRef", Code: fault.ValidationError}},
		`{"userPromptRef":{"templateId":"writer","x":1}}`: {{Path: "/userPromptRef/x", Code: fault.ValidationError}},
		`{"systemPromptRef":"prompt:writer"}`:             {{Path: "/systemPromptRef", Code: fault.ValidationError}},
		`{"additionalPromptRefs":"prompt:shot"}`: {{
			Path: "/additionalPromptRefs",
			Code: fault.ValidationError,
		}},
		`{"additionalPromptRefs":["prompt:shot","prompt:gone",1]}`: {
			{Path: "/additionalPromptRefs/2", Code: fault.ValidationError},
			{Path: "/additionalPromptRefs/1", Code: fault.TemplateNotFound},
		},
		`{"system":"x","systemPromptRef":"prompt:role"}`:        {{Path: "/system", Code: fault.ValidationError}},
		`{"prompt":"x","promptId":"writer"}`:                    {{Path: "/prompt", Code: fault.ValidationError}},
		`{"userPromptRef":"prompt:writer","promptId":"writer"}`: {{Path: "/promptId", Code: fault.ValidationError}},
		`{"userPromptRef":{"templateId":"writer","variableOverrides":{"to/pic":1,"topic":1}}}`: {
			{Path: "/userPromptRef/variableOverrides/to~1pic", Code: fault.ValidationError},
			{Path: "/userPromptRef/variableOverrides/topic", Code: fault.ValidationError},
		},
	} {
		parts, wrong := shelf(t).Plan(json.RawMessage(config))
		require.Empty(t, parts)
		for i := range wrong {
			require.NotEmpty(t, wrong[i].Message)
			wrong[i].Message = ""
		}
		require.Equal(t, want, wrong, config)
	}
}

// Other hosts use promptId for their own prompts: a host without templates ignores it, and rejects
// any other reference.
func TestPlan_WithoutTemplates(t *testing.T) {
	t.Parallel()
	none := (*prompt.Library)(nil)
	parts, wrong := none.Plan(json.RawMessage(`{"promptId":"conformance.stream-text-noop","prompt":"x"}`))
	require.Empty(t, parts)
	require.Empty(t, wrong)
	_, wrong = none.Plan(json.RawMessage(`{"systemPromptRef":"prompt:role"}`))
	require.Len(t, wrong, 1)
	require.Equal(t, fault.TemplateNotFound, wrong[0].Code)
}

// A repeated composition uses the same versions.
func TestPlan_KeepsToPinnedVersions(t *testing.T) {
	t.Parallel()
	l := library(t, versions(t, "w", "1.0.0", "2.0.0")...)
	for pin, want := range map[string]string{
		"prompt:w@1.0.0": "1.0.0",
		"prompt:w@0.9.0": "2.0.0",
		"prompt:v@1.0.0": "2.0.0",
		"":               "2.0.0",
	} {
		parts, wrong := l.Plan(json.RawMessage(`{"promptId":"w"}`), pin)
		require.Empty(t, wrong)
		require.Equal(t, want, parts[0].Template.Version, pin)
	}
}
