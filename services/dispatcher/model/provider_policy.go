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

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// wildcard stands for every tenant, or every provider, that has no rule of its own.
const wildcard = "*"

// PolicyRule is what holds for one provider.
type PolicyRule struct {
	Mode modelgate.PolicyMode `json:"mode"`
	// AllowedModels are patterns of models, for restricted: * is any part of a name, ? a
	// character, [a-z] one of some. None allows none.
	AllowedModels []string `json:"allowedModels"`
}

// Policies are the provider rules of a host. The nil Policies have none. They never change, and are
// safe for concurrent use.
type Policies struct {
	tenants map[string]map[string]PolicyRule
}

//go:embed policies.schema.json
var policySchema []byte

// compiledPolicySchema is compiled on first use; the document is part of the binary and tests compile it.
var compiledPolicySchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("provider policies", policySchema)
	if err != nil {
		panic("providerpolicy: embedded schema: " + err.Error())
	}
	return s
})

// ParsePolicies reads the operator's document. The error tells with its place of all that the
// document's policyForm forbids (32 of it at most), and of all that the other policyRules contradict
// themselves in.
func ParsePolicies(doc []byte) (*Policies, error) {
	if err := strictjson.Check(doc, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf(`want {"tenants": {TENANT: {PROVIDER: {"mode": MODE}}}}: %w`, err)
	}
	var errs []error
	malformed := map[string]bool{} // policyRules of which something could not be read: the rest proves nothing
	for _, v := range compiledPolicySchema().Validate(doc) {
		errs = append(errs, fmt.Errorf("at %q: %s", v.InstancePath, v.Message))
		parts := strings.SplitN(v.InstancePath, "/", 5)
		malformed[strings.Join(parts[:min(len(parts), 4)], "/")] = true
	}
	var file struct {
		Tenants map[string]map[string]PolicyRule `json:"tenants"`
	}
	if err := strictjson.Read(doc, &file); err != nil && len(errs) == 0 {
		return nil, err
	}
	for _, tenant := range slices.Sorted(maps.Keys(file.Tenants)) {
		for _, provider := range slices.Sorted(maps.Keys(file.Tenants[tenant])) {
			at := "/tenants/" + escapePointer(tenant) + "/" + escapePointer(provider)
			if malformed[at] {
				continue
			}
			if err := file.Tenants[tenant][provider].validate(at + "/allowedModels"); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 { // an empty file, too, is a mistake more often than a wish
		return nil, fmt.Errorf("want {\"tenants\": {TENANT: {PROVIDER: {\"mode\": MODE}}}}\n%w", errors.Join(errs...))
	}
	return &Policies{file.Tenants}, nil
}

// escapePointer makes a name a part of a JSON pointer.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// validate finds what a rule, whose allowedModels stand at that place, contradicts itself in.
func (r PolicyRule) validate(at string) error {
	if r.Mode != modelgate.Restricted && r.AllowedModels != nil {
		return fmt.Errorf("at %q: only the mode %s has them, and this is %s", at, modelgate.Restricted, r.Mode)
	}
	var errs []error
	for i, p := range r.AllowedModels {
		if _, err := matchModel(p, ""); err != nil {
			errs = append(errs, fmt.Errorf("at \"%s/%d\": %q: %w; want a model's name, with * for any part of it", at, i, p, err))
		}
	}
	return errors.Join(errs...)
}

// Of is the rule of a tenant for a provider.
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

// PolicyKey says what there is of a tenant's own key.
type PolicyKey int

// What there can be.
const (
	KeyNone       PolicyKey = iota // the run names none
	KeyUnresolved                  // it names one that is not there
	KeyFound
)

// Denial is why a model may not be asked: words of the protocol, and what would be
// allowed. It never holds a rule of another provider or tenant.
type Denial struct {
	Reason  string
	Message string
	// Allowed is set where models are what a rule is about.
	Allowed []string
}

// Judge says why a model may not be asked; nil: it may.
func (r PolicyRule) Judge(m modelgate.Model, key PolicyKey) *Denial {
	switch r.Mode {
	case modelgate.Disabled:
		return &Denial{Reason: "provider_disabled", Message: fmt.Sprintf("provider %q is switched off for this tenant; choose another", m.Provider)}
	case modelgate.Required:
		return r.judgeKey(m, key)
	case modelgate.Restricted:
		if r.allowsModel(m.Model) {
			return nil
		}
		return &Denial{
			Reason: "model_not_allowed", Allowed: append([]string{}, r.AllowedModels...),
			Message: fmt.Sprintf("model %q of provider %q is not among those that this tenant may ask: %v", m.Model, m.Provider, r.AllowedModels),
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
		return &Denial{Reason: "byok_required_but_unresolved", Message: fmt.Sprintf("provider %q is asked with the tenant's own key only, and the run's ai.credentialRef names none that is there for it", m.Provider)}
	default:
		return &Denial{Reason: "byok_required", Message: fmt.Sprintf("provider %q is asked with the tenant's own key only; name it in configurable.ai.credentialRef", m.Provider)}
	}
}

func (r PolicyRule) allowsModel(model string) bool {
	return slices.ContainsFunc(r.AllowedModels, func(pattern string) bool {
		ok, err := matchModel(pattern, model)
		return err == nil && ok
	})
}

// matchModel holds a model to a pattern. The names of models are no paths: * stands for
// slashes, too.
func matchModel(pattern, model string) (bool, error) {
	flat := strings.NewReplacer("/", "\x00")
	return path.Match(flat.Replace(pattern), flat.Replace(model))
}
