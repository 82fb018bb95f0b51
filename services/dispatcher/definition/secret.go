package definition

import (
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/workflow"
)

// maxPlaces limits the paths in an error.
const maxPlaces = 10

// NewSecretFault rejects a definition that the redactor would change. A definition is stored and
// shown unchanged, and its prompts are sent to models, so it must not contain secrets (OpenWOP
// envelope contract §11).
func NewSecretFault(given, redacted []byte) error {
	var a, b any
	if json.Unmarshal(given, &a) != nil || json.Unmarshal(redacted, &b) != nil {
		return fault.New(fault.ValidationError, "the definition contains a secret, or what looks like one")
	}
	places := differences("", a, b)
	where := "the document"
	if len(places) > 0 {
		where = places[0]
	}
	return fault.New(fault.ValidationError,
		"%s: the definition contains a secret, or what looks like one, in %d place(s); workflows are stored and shown as they are: use a reference to a secret", where, len(places)).
		With("problems", secretProblems(places[:min(len(places), maxPlaces)]))
}

// RuleSecret is the rule of secrets in definitions.
const RuleSecret = "secret"

func secretProblems(places []string) []fault.Problem {
	out := make([]fault.Problem, len(places))
	for i, at := range places {
		out[i] = fault.Problem{Path: at, Rule: RuleSecret, Message: "a secret, or what looks like one; remove it, and keep keys in --credentials or in the settings of the server"}
	}
	return out
}

// SecretProblems returns the places of the fault of NewSecretFault.
func SecretProblems(f *fault.Error) []workflow.Problem {
	found, _ := f.Details["problems"].([]fault.Problem)
	out := make([]workflow.Problem, 0, len(found))
	for _, p := range found {
		out = append(out, workflow.Problem{Path: p.Path, Rule: p.Rule, Message: p.Message})
	}
	if len(out) == 0 {
		out = append(out, workflow.Problem{Rule: RuleSecret, Message: f.Message})
	}
	return out
}

// differences returns the JSON pointers at which two documents differ. A renamed member is reported
// at its object.
func differences(at string, a, b any) []string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return []string{at}
		}
		var out []string
		renamed := false
		for name, v := range a {
			other, has := b[name]
			if !has {
				renamed = true
				continue
			}
			out = append(out, differences(at+"/"+jsonpointer.Escape(name), v, other)...)
		}
		if renamed {
			out = append(out, at+"/")
		}
		slices.Sort(out)
		return out
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return []string{at}
		}
		var out []string
		for i := range a {
			out = append(out, differences(fmt.Sprintf("%s/%d", at, i), a[i], b[i])...)
		}
		return out
	default:
		if a != b {
			return []string{at}
		}
		return nil
	}
}
