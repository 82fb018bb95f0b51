package strictjson

import (
	"bytes"
	"unicode"
)

// Hint returns the remedy for a document that people write by hand and that is no JSON, by what stands at
// the place of the error; empty if there is none.
func Hint(doc []byte, offset int) string {
	if offset < 0 || offset >= len(doc) {
		return ""
	}
	before := bytes.TrimSpace(doc[:offset])
	switch c := doc[offset]; {
	case c == '/':
		return "JSON has no comments; use the members description and notes"
	case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")):
		return "remove the comma before it"
	case c == '\'' || bytes.HasPrefix(doc[offset:], []byte("“")):
		return "texts and names stand in plain double quotes"
	case len(before) == 0 && c < unicode.MaxASCII && (unicode.IsLetter(rune(c)) || c == '-' || c == '#'):
		return "the file looks like YAML; want JSON"
	case c == '"' && len(before) > 0:
		return "a comma is missing before it"
	}
	return ""
}
