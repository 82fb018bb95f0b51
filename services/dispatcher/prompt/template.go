package prompt

import (
	"encoding/json"
	"regexp"
	"slices"
)

// Kind is the part that a template plays in a call.
type Kind string

// The four kinds.
const (
	System     Kind = "system"
	User       Kind = "user"
	FewShot    Kind = "few-shot"
	SchemaHint Kind = "schema-hint"
)

// Kinds lists all of them.
func Kinds() []Kind { return []Kind{System, User, FewShot, SchemaHint} }

// Source is where the value of a variable comes from.
type Source string

// The four sources. One that is not said is the input.
const (
	FromInput    Source = "input"
	FromVariable Source = "variable"
	FromSecret   Source = "secret"
	FromContext  Source = "context"
)

// HostLibrary is the library of templates that come with no pack.
const HostLibrary = "host"

// Template is a text of one version, with places to fill in.
type Template struct {
	ID        string     `json:"templateId"`
	Version   string     `json:"version"`
	Kind      Kind       `json:"kind"`
	Text      string     `json:"text"`
	Name      string     `json:"name"`
	Variables []Variable `json:"variables"`
	// Library is the name of the pack that the template came with, or HostLibrary.
	Library string `json:"-"`
}

// Variable is a place in a template's text.
type Variable struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Source   Source `json:"source"`
	// ExtractPath leads to a part of the source's value; empty: all of it.
	ExtractPath string `json:"extractPath"`
	// Default stands in for a missing value of an optional variable.
	Default json.RawMessage `json:"defaultValue"`
}

func (v Variable) source() Source {
	if v.Source == "" {
		return FromInput
	}
	return v.Source
}

// Ref names exactly this version.
func (t *Template) Ref() string { return refScheme + t.ID + "@" + t.Version }

// placeholder finds {{name}}, and the two forms in which Mustache leaves a value as it
// is, which is what is done to every value here.
var placeholder = regexp.MustCompile(`\{\{\{\s*([a-zA-Z_][a-zA-Z0-9_]{0,63})\s*\}\}\}|\{\{&?\s*([a-zA-Z_][a-zA-Z0-9_]{0,63})\s*\}\}`)

// placeName is the name in a match of placeholder.
func placeName(groups []string) string { return groups[1] + groups[2] }

// slots are the variables of the template: those it declares, then those that only
// its text has, which are optional inputs.
func (t *Template) slots() []Variable {
	out := slices.Clone(t.Variables)
	for _, m := range placeholder.FindAllStringSubmatch(t.Text, -1) {
		if name := placeName(m); !hasVariable(out, name) {
			out = append(out, Variable{Name: name, Source: FromInput})
		}
	}
	return out
}

func hasVariable(list []Variable, name string) bool {
	return slices.ContainsFunc(list, func(v Variable) bool { return v.Name == name })
}
