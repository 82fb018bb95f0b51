package judge

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// describe returns the message for a failure, in terms of the schema. It reads no field that holds
// a part of the document: no Got, no Property, no Duplicates.
func describe(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "want type " + strings.Join(k.Want, " or ")
	case *kind.Enum:
		return "not one of the allowed values" + listed(k.Want)
	case *kind.Const:
		return "not the required value" + listed([]any{k.Want})
	case *kind.Format:
		return "want a " + k.Want
	case *kind.Not:
		return "matches what the schema forbids here"
	case *kind.OneOf:
		return "fits more than one of the alternatives; must fit exactly one"
	case *kind.FalseSchema:
		return "nothing is allowed here"
	case *kind.RefCycle:
		return "the schema refers to itself here without end"
	}
	for _, words := range []func(jsonschema.ErrorKind) string{describeObject, describeArray, describeString, describeNumber} {
		if text := words(k); text != "" {
			return text
		}
	}
	return "does not satisfy " + strings.Join(k.KeywordPath(), " ")
}

func describeObject(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Required:
		return "required member missing: " // each name follows
	case *kind.AdditionalProperties:
		return "additional member not allowed"
	case *kind.PropertyNames:
		return "member name not allowed"
	case *kind.MinProperties:
		return fmt.Sprintf("want at least %d members", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("want at most %d members", k.Want)
	case *kind.DependentRequired:
		return fmt.Sprintf("with member %s also required: %s", k.Prop, joined(k.Missing))
	case *kind.Dependency:
		return fmt.Sprintf("with member %s also required: %s", k.Prop, joined(k.Missing))
	}
	return ""
}

func describeArray(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinItems:
		return fmt.Sprintf("want at least %d items", k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("want at most %d items", k.Want)
	case *kind.UniqueItems:
		return "want items that differ from each other"
	case *kind.Contains:
		return "want at least one item of the kind the schema describes"
	case *kind.MinContains:
		return fmt.Sprintf("want at least %d items of the kind the schema describes", k.Want)
	case *kind.MaxContains:
		return fmt.Sprintf("want at most %d items of the kind the schema describes", k.Want)
	}
	return ""
}

func describeString(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("want at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("want at most %d characters", k.Want)
	case *kind.Pattern:
		return "want text that matches " + shortened(k.Want)
	}
	return ""
}

func describeNumber(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "want a number of at least " + number(k.Want)
	case *kind.Maximum:
		return "want a number of at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "want a number above " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "want a number below " + number(k.Want)
	case *kind.MultipleOf:
		return "want a multiple of " + number(k.Want)
	}
	return ""
}

// most limits the values or names listed in a message.
const most = 16

// joined lists names.
func joined(names []string) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// listed lists the allowed values if they are few and short.
func listed(values []any) string {
	const longest = 64
	if len(values) > most {
		return ""
	}
	words := make([]string, 0, len(values))
	for _, v := range values {
		if left := longest; !within(v, &left) {
			return ""
		}
		b, err := json.Marshal(v)
		if err != nil || len(b) > longest {
			return ""
		}
		words = append(words, string(b))
	}
	return ": " + strings.Join(words, ", ")
}

// within reports whether v can be rendered in the remaining bytes.
func within(v any, left *int) bool {
	*left--
	switch v := v.(type) {
	case string:
		*left -= len(v)
	case json.Number:
		*left -= len(v)
	case []any:
		for _, w := range v {
			if !within(w, left) {
				return false
			}
		}
	case map[string]any:
		for name, w := range v {
			if *left -= len(name); !within(w, left) {
				return false
			}
		}
	}
	return *left >= 0
}

// shortened truncates a long pattern.
func shortened(pattern string) string {
	const longest = 200
	if r := []rune(pattern); len(r) > longest {
		return string(r[:longest]) + "..."
	}
	return pattern
}

// number renders a limit of the schema in decimal notation.
func number(r *big.Rat) string {
	if r.IsInt() && r.Num().BitLen() <= 64 {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return fmt.Sprintf("%g", f)
}
