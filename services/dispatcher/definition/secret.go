package definition

import (
	"encoding/json"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
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

func secretProblems(places []string) []fault.Problem {
	out := make([]fault.Problem, len(places))
	for i, at := range places {
		out[i] = fault.Problem{Path: at, Message: "a secret, or what looks like one"}
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
