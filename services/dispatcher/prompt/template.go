package prompt

import (
	"encoding/json"
	"regexp"
	"slices"
)

// Kind is the role of a template in a call.
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

// Source is the source of a variable's value.
type Source string

// The four sources. The default is the input.
const (
	FromInput    Source = "input"
	FromVariable Source = "variable"
	FromSecret   Source = "secret"
	FromContext  Source = "context"
)

// HostLibrary is the library of templates without a pack.
const HostLibrary = "host"

// Template is one version of a text with placeholders.
type Template struct {
	ID        string     `json:"templateId"`
	Version   string     `json:"version"`
	Kind      Kind       `json:"kind"`
	Text      string     `json:"text"`
	Name      string     `json:"name"`
	Variables []Variable `json:"variables"`
	Tags      []string   `json:"tags"`
	// Library is the name of the template's pack, or HostLibrary.
	Library string `json:"-"`
}

// Variable is a placeholder of a template.
type Variable struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Source   Source `json:"source"`
	// ExtractPath selects a part of the source's value; empty selects all of it.
	ExtractPath string `json:"extractPath"`
	// Default replaces a missing value of an optional variable.
	Default json.RawMessage `json:"defaultValue"`
}

func (v Variable) source() Source {
	if v.Source == "" {
		return FromInput
	}
	return v.Source
}

// Ref returns the reference to exactly this version.
func (t *Template) Ref() string { return refScheme + t.ID + "@" + t.Version }

// placeholder matches {{name}} and the two unescaped Mustache forms. No value is escaped here.
var placeholder = regexp.MustCompile(`\{\{\{\s*([a-zA-Z_][a-zA-Z0-9_]{0,63})\s*\}\}\}|\{\{&?\s*([a-zA-Z_][a-zA-Z0-9_]{0,63})\s*\}\}`)

// placeName returns the name in a match of placeholder.
func placeName(groups []string) string { return groups[1] + groups[2] }

// slots returns the declared variables, then those that only occur in the text, which are optional
// inputs.
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
