package prompt

import (
	"encoding/json"
	"regexp"
)

const refScheme = "prompt:"

// Ref is a reference to a template.
type Ref struct {
	// Library is a pack's name or HostLibrary; empty allows any.
	Library string `json:"libraryId"`
	ID      string `json:"templateId"`
	// Version is exact; empty means the newest.
	Version string `json:"version"`
	// Overrides are values that take precedence over those of the node.
	Overrides map[string]json.RawMessage `json:"variableOverrides"`
}

// String returns the short form.
func (r Ref) String() string {
	if r.Version == "" {
		return refScheme + r.ID
	}
	return refScheme + r.ID + "@" + r.Version
}

// shortRef is the format of a reference as text.
var shortRef = regexp.MustCompile(`^prompt:([a-z0-9][a-z0-9._-]{0,127})(?:@(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?))?$`)

// bareID is the format of a template id.
var bareID = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

const wantRef = `want a reference such as "prompt:writer", "prompt:writer@1.2.0", or an object with templateId`

// ParseRef reads a reference: a text or an object. Paths are relative to it.
func ParseRef(raw json.RawMessage) (Ref, []Problem) {
	var text string
	if json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		return parseShort(text)
	}
	if len(raw) == 0 || raw[0] != '{' {
		return Ref{}, []Problem{invalid("", wantRef)}
	}
	var r Ref
	if found := readForm(raw, refForm(), &r); found != nil {
		return Ref{}, found
	}
	return r, nil
}

func parseShort(text string) (Ref, []Problem) {
	m := shortRef.FindStringSubmatch(text)
	if m == nil {
		return Ref{}, []Problem{invalid("", wantRef)}
	}
	return Ref{ID: m[1], Version: m[2]}, nil
}

// ParseName reads a short reference or a template id.
func ParseName(text string) (Ref, []Problem) {
	if bareID.MatchString(text) {
		return Ref{ID: text}, nil
	}
	return parseShort(text)
}
