package model

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
)

// wildcard is every tenant, or every provider, without a rule of its own.
const wildcard = "*"

// PolicyRule is the rule for one provider.
type PolicyRule struct {
	Mode modelgate.PolicyMode `json:"mode"`
	// AllowedModels are patterns of models for restricted, which requires them: * matches any part of a
	// name, ? a character, [a-z] a class. An empty list allows none.
	AllowedModels []string `json:"allowedModels"`
}

// Policies are the provider rules of a host. The nil Policies have none. They are immutable and
// safe for concurrent use.
type Policies struct {
	tenants map[string]map[string]PolicyRule
}

//go:embed policies.schema.json
var policySchema []byte

// compiledPolicySchema is compiled on first use. The document is part of the binary and tests
// compile it.
var compiledPolicySchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("provider policies", policySchema)
	if err != nil {
		panic("providerpolicy: embedded schema: " + err.Error())
	}
	return s
})

// ParsePolicies reads the operator's document. known are the ids of the providers; nil knows all. The error
// lists every violation of the schema (32 at most) and every contradiction in the other rules, each with
// its path.
func ParsePolicies(doc []byte, known *settings.Names) (*Policies, error) {
	if e, wrong := errors.AsType[*strictjson.Error](strictjson.Check(doc, strictjson.Limits{})); wrong {
		return nil, fmt.Errorf("%s\n%w", policyForm, strictjson.Problems{{Path: e.Path, Message: e.Reason}}.In(doc))
	}
	var found strictjson.Problems
	malformed := map[string]bool{} // rules with violations; further checks of them prove nothing
	for _, v := range compiledPolicySchema().Validate(doc) {
		if strings.Contains(v.SchemaPath, "/then/") {
			continue // the message of validate has the remedy
		}
		found = append(found, strictjson.Problem{Path: v.InstancePath, Message: compiledPolicySchema().Explain(v, doc)})
		parts := strings.SplitN(v.InstancePath, "/", 5)
		malformed[strings.Join(parts[:min(len(parts), 4)], "/")] = true
	}
	var file struct {
		Tenants map[string]map[string]PolicyRule `json:"tenants"`
	}
	if err := strictjson.Read(doc, &file); err != nil && len(found) == 0 {
		return nil, err
	}
	for _, tenant := range slices.Sorted(maps.Keys(file.Tenants)) {
		if tenant != wildcard && !subject.Token(tenant) {
			found = append(found, strictjson.Problem{Path: "/tenants/" + jsonpointer.Escape(tenant), Message: "want the name of a tenant or *"})
		}
		for _, provider := range slices.Sorted(maps.Keys(file.Tenants[tenant])) {
			at := "/tenants/" + jsonpointer.Escape(tenant) + "/" + jsonpointer.Escape(provider)
			if provider != wildcard {
				if message := known.Check(at, provider, "provider", "* is all others"); message != "" {
					found = append(found, strictjson.Problem{Path: at, Message: message})
				}
			}
			if malformed[at] {
				continue
			}
			found = append(found, file.Tenants[tenant][provider].validate(at)...)
		}
	}
	if len(found) > 0 { // an empty file is more often a mistake than intended
		return nil, fmt.Errorf("%s\n%w", policyForm, found.In(doc))
	}
	return &Policies{file.Tenants}, nil
}

const policyForm = `want {"tenants": {TENANT: {PROVIDER: {"mode": MODE}}}}`

// validate finds contradictions in a rule; at is its path.
func (r PolicyRule) validate(at string) strictjson.Problems {
	models := at + "/allowedModels"
	switch {
	case r.Mode != modelgate.Restricted && r.AllowedModels != nil:
		return strictjson.Problems{{Path: models, Message: fmt.Sprintf("only the mode %s has them, and this is %s", modelgate.Restricted, r.Mode)}}
	case r.Mode == modelgate.Restricted && r.AllowedModels == nil:
		return strictjson.Problems{{Path: at, Message: fmt.Sprintf(
			"the mode %s needs allowedModels, patterns such as [\"gpt-5*\"]; the mode %s denies all models", modelgate.Restricted, modelgate.Disabled)}}
	}
	var out strictjson.Problems
	for i, p := range r.AllowedModels {
		if _, err := matchModel(p, ""); err != nil {
			out = append(out, strictjson.Problem{
				Path:    fmt.Sprintf("%s/%d", models, i),
				Message: fmt.Sprintf("%q: %s; want a model's name, with * for any part of it", p, err),
			})
		}
	}
	return out
}

// Of returns the rule of a tenant for a provider.
func (p *Policies) Of(tenant, provider string) PolicyRule {
	if p != nil {
		for _, t := range []string{tenant, wildcard} {
			for _, id := range []string{provider, wildcard} {
				if r, ok := p.tenants[t][id]; ok {
					return r
				}
			}
		}
	}
	return PolicyRule{Mode: modelgate.Optional}
}

// PolicyKey is the state of a tenant's own key.
type PolicyKey int

// The states.
const (
	KeyNone       PolicyKey = iota // the run names none
	KeyUnresolved                  // it names a key that does not exist
	KeyFound
)

// Denial is why a model is denied, in the protocol's terms, and what is allowed. It never reveals a
// rule of another provider or tenant.
type Denial struct {
	Reason  string
	Message string
	// Allowed is set if the rule is about models.
	Allowed []string
}

// Judge returns why a model is denied; nil if it is allowed.
func (r PolicyRule) Judge(m modelgate.Model, key PolicyKey) *Denial {
	switch r.Mode {
	case modelgate.Disabled:
		return &Denial{
			Reason:  "provider_disabled",
			Message: fmt.Sprintf("provider %q is switched off for this tenant; choose another", m.Provider),
		}
	case modelgate.Required:
		return r.judgeKey(m, key)
	case modelgate.Restricted:
		if r.allowsModel(m.Model) {
			return nil
		}
		return &Denial{
			Reason: "model_not_allowed",
			Message: fmt.Sprintf("model %q of provider %q is not among those that this tenant may ask: %v",
				m.Model, m.Provider, r.AllowedModels),
			Allowed: append([]string{}, r.AllowedModels...),
		}
	default:
		return nil
	}
}

func (r PolicyRule) judgeKey(m modelgate.Model, key PolicyKey) *Denial {
	switch key {
	case KeyFound:
		return nil
	case KeyUnresolved:
		return &Denial{
			Reason: "byok_required_but_unresolved",
			Message: fmt.Sprintf("provider %q is asked with the tenant's own key only, "+
				"and the run's ai.credentialRef names none that is there for it", m.Provider),
		}
	default:
		return &Denial{
			Reason: "byok_required",
			Message: fmt.Sprintf("provider %q is asked with the tenant's own key only; "+
				"name it in configurable.ai.credentialRef", m.Provider),
		}
	}
}

func (r PolicyRule) allowsModel(model string) bool {
	return slices.ContainsFunc(r.AllowedModels, func(pattern string) bool {
		ok, err := matchModel(pattern, model)
		return err == nil && ok
	})
}

// matchModel matches a model's name with a pattern. Names are not paths: * matches slashes too.
func matchModel(pattern, model string) (bool, error) {
	flat := strings.NewReplacer("/", "\x00")
	return path.Match(flat.Replace(pattern), flat.Replace(model))
}

// PolicySchema is the JSON Schema of the operator's document.
func PolicySchema() []byte { return policySchema }
