package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/suggest"
)

// Keywords of violations by a member that an object must not have.
const (
	keywordAdditional  = "additionalProperties"
	keywordUnevaluated = "unevaluatedProperties"
)

// UnknownMember reports whether the violation is a member that the schema does not have.
func (v Violation) UnknownMember() bool {
	return v.Keyword == keywordAdditional || v.Keyword == keywordUnevaluated
}

// Explain returns the message of a violation for the author of the document. For an unknown member it
// adds the closest member and all that are allowed, for an enum the closest value, and for a value of the
// wrong form what the schema says of it. doc is the document. Unlike Message it may repeat a name of the
// schema because the document has a similar one.
func (s *Schema) Explain(v Violation, doc []byte) string {
	switch {
	case v.UnknownMember():
		known := s.members(v)
		if len(known) == 0 {
			return "unknown member; there are none here"
		}
		return UnknownMember(lastToken(v.InstancePath), known, parent(doc, v.InstancePath))
	case v.Keyword == "enum":
		value, isText := strictjson.String(lookup(doc, v.InstancePath))
		var allowed []string
		_ = json.Unmarshal(lookup(s.Document(), v.SchemaPath), &allowed) // values that are no texts have no close one
		if near := Near(value, allowed); isText && near != "" {
			return v.Message + "; did you mean " + near + "?"
		}
	case v.Keyword == "type" || v.Keyword == "pattern":
		text := v.Message
		if remedy := s.remedy(v, doc); remedy != "" {
			text += "; " + remedy
		}
		if what := s.describe(v); what != "" {
			text += " (" + what + ")"
		}
		return text
	}
	return v.Message
}

// remedy returns what to write instead of a text that does not match its pattern: the same in lower case, or
// an alternative of the pattern that is close. It does not repeat the text.
func (s *Schema) remedy(v Violation, doc []byte) string {
	if v.Keyword != "pattern" {
		return ""
	}
	text, isText := strictjson.String(lookup(doc, v.InstancePath))
	source, _ := strictjson.String(lookup(s.Document(), v.SchemaPath))
	pattern, err := Pattern(source)
	if !isText || err != nil || len(text) > maxNamed {
		return ""
	}
	if pattern.MatchString(strings.ToLower(text)) {
		return "write it in lower case"
	}
	var known []string
	for _, name := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(source, "^("), ")$"), "|") {
		if name != source && pattern.MatchString(name) {
			known = append(known, name)
		}
	}
	if near := Near(text, known); near != "" {
		return "did you mean " + near + "?"
	}
	return ""
}

// maxNamed limits the texts for which a similar one is searched, in bytes.
const maxNamed = 64

// describe returns the first sentence of the description next to a violated keyword.
func (s *Schema) describe(v Violation) string {
	at := v.SchemaPath[:max(strings.LastIndexByte(v.SchemaPath, '/'), 0)]
	text, _ := strictjson.String(lookup(s.Document(), at+"/description"))
	text, _, _ = strings.Cut(text, ". ")
	return strings.TrimSuffix(text, ".")
}

// parent returns the object with the member at a pointer.
func parent(doc []byte, pointer string) (object map[string]json.RawMessage) {
	_ = json.Unmarshal(lookup(doc, pointer[:strings.LastIndexByte(pointer, '/')]), &object) // otherwise nil
	return object
}

// MeantAt is Meant for the member at a pointer.
func MeantAt(doc []byte, pointer string, known []string) string {
	return Meant(lastToken(pointer), known, parent(doc, pointer))
}

// UnknownMember returns the message for a member that an object must not have: the closest name and
// all that are allowed.
func UnknownMember(name string, known []string, object map[string]json.RawMessage) string {
	text := "unknown member;"
	if meant := Meant(name, known, object); meant != "" {
		text += " " + meant
	}
	return text + " allowed: " + strings.Join(known, ", ")
}

// Meant returns a suggestion for a member that an object must not have: the closest name, or that the
// object has that, too; empty if none is close.
func Meant(name string, known []string, object map[string]json.RawMessage) string {
	near := Near(name, known)
	switch {
	case near == "":
		return ""
	case object[near] != nil:
		return near + " is set, too: remove one of the two;"
	default:
		return "did you mean " + near + "?"
	}
}

// Near returns the known name that an unknown one is probably meant to be: a synonym, or the closest;
// empty if there is none. Short names are close to anything.
func Near(name string, known []string) string {
	if synonym := suggest.Synonym(name, known); synonym != "" {
		return synonym
	}
	if len(name) < 3 || len(name) > 64 {
		return ""
	}
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

// members returns the names of the members that the violated object may have, sorted; nil unless the
// violation is an unknown member.
func (s *Schema) members(v Violation) []string {
	if !v.UnknownMember() {
		return nil
	}
	at := v.SchemaPath[:max(strings.LastIndexByte(v.SchemaPath, '/'), 0)]
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(lookup(s.Document(), at), &object) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object.Properties))
}

// lookup returns the value at a JSON pointer; nil if there is none.
func lookup(doc json.RawMessage, pointer string) json.RawMessage {
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = jsonpointer.Unescape(token)
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(doc, &object) == nil:
			doc = object[token]
		case json.Unmarshal(doc, &list) == nil:
			i := index(token)
			if i < 0 || i >= len(list) {
				return nil
			}
			doc = list[i]
		default:
			return nil
		}
	}
	return doc
}

// index reads an array index; -1 if it is none.
func index(token string) int {
	n := -1
	for _, r := range token {
		if r < '0' || r > '9' || n > maxSchemaBytes {
			return -1
		}
		n = max(n, 0)*10 + int(r-'0')
	}
	return n
}

func lastToken(pointer string) string {
	return jsonpointer.Unescape(pointer[strings.LastIndexByte(pointer, '/')+1:])
}
