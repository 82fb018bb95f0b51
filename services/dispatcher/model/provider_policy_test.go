package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/model"
)

const rules = `{"tenants": {
	"acme": {"openai": {"mode": "restricted", "allowedModels": ["gpt-5*", "o?"]}, "box": {"mode": "restricted", "allowedModels": ["*"]},
		"shut": {"mode": "restricted", "allowedModels": []}, "free": {"mode": "optional"}, "*": {"mode": "required"}},
	"*": {"free": {"mode": "disabled"}, "gemini": {"mode": "disabled"}}}}`

// OpenWOP host contract §5.8: each mode with each of its reasons, and the precedence of rules.
func TestJudge_IsTheTableOfModes(t *testing.T) {
	t.Parallel()
	p, err := model.ParsePolicies([]byte(rules), nil)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		tenant, provider, model string
		key                     model.PolicyKey
		reason                  string
		allowed                 []string
	}{
		"restricted, allowed":             {"acme", "openai", "gpt-5.5-mini", 0, "", nil},
		"restricted, one character":       {"acme", "openai", "o4", 0, "", nil},
		"restricted, not allowed":         {"acme", "openai", "gpt-4o", 0, "model_not_allowed", []string{"gpt-5*", "o?"}},
		"restricted, not its whole name":  {"acme", "openai", "my-gpt-5", 0, "model_not_allowed", []string{"gpt-5*", "o?"}},
		"restricted, a name with slashes": {"acme", "box", "org/model:7b", 0, "", nil},
		"restricted, an empty list":       {"acme", "shut", "m", model.KeyFound, "model_not_allowed", []string{}},
		"the tenant's own rule is first":  {"acme", "free", "m", 0, "", nil},
		"required, no key":                {"acme", "gemini", "m", model.KeyNone, "byok_required", nil},
		"required, a key that is gone":    {"acme", "gemini", "m", model.KeyUnresolved, "byok_required_but_unresolved", nil},
		"required, a key":                 {"acme", "gemini", "m", model.KeyFound, "", nil},
		"everybody's rule":                {"other", "gemini", "m", model.KeyFound, "provider_disabled", nil},
		"no rule":                         {"other", "openai", "m", 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := p.Of(tc.tenant, tc.provider).Judge(modelgate.Model{Provider: tc.provider, Model: tc.model}, tc.key)
			if tc.reason == "" {
				require.Nil(t, d)
				return
			}
			require.NotNil(t, d)
			require.Equal(t, tc.reason, d.Reason)
			require.Equal(t, tc.allowed, d.Allowed)
			require.Contains(t, d.Message, tc.provider)
		})
	}
}

func TestOf_NoPoliciesAllowAll(t *testing.T) {
	t.Parallel()
	var p *model.Policies
	require.Nil(t, p.Of("acme", "openai").Judge(modelgate.Model{Provider: "openai", Model: "m"}, model.KeyNone))
}

func TestParse_SaysAllThatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string][]string{
		`{"tenants":{"acme":{"openai":{"mode":"off"}}}}`:                               {`at "/tenants/acme/openai/mode": not one of the allowed values: "disabled", "optional", "required", "restricted"`},
		`{"tenants":{"acme":{"openai":{}}}}`:                                           {`at "/tenants/acme/openai": required member missing: mode`},
		`{"tenants":{"acme":{"openai":{"mode":"disabled","allowedModels":["m"]}}}}`:    {`at "/tenants/acme/openai/allowedModels": only the mode restricted has them`},
		`{"tenants":{"acme":{"openai":{"mode":"restricted","allowedModels":["[m"]}}}}`: {`at "/tenants/acme/openai/allowedModels/0": "[m"`},
		`{"tenants":{"acme":{"openai":{"mode":"restricted","models":["m"]}}}}`:         {`at "/tenants/acme/openai/models"`},
		`{"tenants":{"a":{"p":{"mode":"x"}},"b":{"p":{"Mode":"optional"}},"c":7}}`:     {`"/tenants/a/p/mode"`, `"/tenants/b/p/Mode"`, `"/tenants/b/p": required`, `"/tenants/c"`},
		`{"tenants":{"a":{"p/q":{"mode":"restricted","allowedModels":["[m","ok","[n"]},"r":{"mode":"optional","allowedModels":[]}}}}`: {
			`"/tenants/a/p~1q/allowedModels/0"`, `"/tenants/a/p~1q/allowedModels/2"`, `"/tenants/a/r/allowedModels"`,
		},
		`{"tenants":{"acme":{"openai":{"mode":"restricted"}}}}`:               {`at "/tenants/acme/openai": the mode restricted needs allowedModels`, "the mode disabled denies all"},
		`{"tenants":{"a":{"p":{"mode":"disabled"},"p":{"mode":"optional"}}}}`: {"/tenants/a/p"},
		`{"tenants":{"a":{"x":{"mode":"nope"},"y":7},"b":{"x":{"mode":"optional","allowedModels":["m"]}},"c":{"x":{"mode":"restricted","allowedModels":["["]}}}}`: {
			`"/tenants/a/x/mode"`, `"/tenants/a/y"`, `"/tenants/b/x/allowedModels"`, `"/tenants/c/x/allowedModels/0"`,
		},
		`{"tenants":{}} {}`: {"want {\"tenants\""},
		`{"tenant":{}}`:     {`"/tenant"`, `at "": required member missing: tenants`},
		`{}`:                {`at "": required member missing: tenants`},
		`nothing`:           {"want {\"tenants\""},
	} {
		p, err := model.ParsePolicies([]byte(doc), nil)
		require.Nil(t, p)
		for _, part := range want {
			require.ErrorContains(t, err, part, doc)
		}
	}
}

func TestParse_TakesEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range modelgate.PolicyModes() {
		rule := `{"mode":"` + string(mode) + `"}`
		if mode == modelgate.Restricted {
			rule = `{"mode":"restricted","allowedModels":["m"]}`
		}
		p, err := model.ParsePolicies([]byte(`{"tenants":{"acme":{"openai":`+rule+`}}}`), nil)
		require.NoError(t, err)
		require.Equal(t, mode, p.Of("acme", "openai").Mode)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(rules))
	f.Add([]byte(`{"tenants":{"*":{"*":{"mode":"restricted","allowedModels":["[a-z]*"]}}}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := model.ParsePolicies(doc, nil)
		if err != nil {
			return
		}
		r := p.Of("acme", "openai")
		require.Contains(t, modelgate.PolicyModes(), r.Mode)
		r.Judge(modelgate.Model{Provider: "openai", Model: "gpt-5"}, model.KeyNone)
	})
}
