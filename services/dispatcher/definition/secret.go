package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
)

// maxPlaces is how many places an error names.
const maxPlaces = 10

// HoldsSecret is the refusal of a definition that the redactor would change. It is
// kept and shown as it was given, and its prompts go to a model: what is secret has
// no place in it (OpenWOP envelope contract §11).
func HoldsSecret(given, redacted []byte) error {
	var a, b any
	if json.Unmarshal(given, &a) != nil || json.Unmarshal(redacted, &b) != nil {
		return fault.New(fault.ValidationError, "the definition holds a secret of this host, or what looks like one")
	}
	places := differences("", a, b)
	where := "the document"
	if len(places) > 0 {
		where = places[0]
	}
	return fault.New(fault.ValidationError,
		"%s: the definition holds a secret of this host, or what looks like one, in %d place(s); a workflow is shown as it was given and must not hold any", where, len(places)).
		With("places", places[:min(len(places), maxPlaces)])
}

// differences lists where two documents differ, as JSON pointers. A member whose
// name differs is told at its object.
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
			out = append(out, differences(at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), v, other)...)
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
