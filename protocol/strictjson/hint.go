package strictjson

import (
	"bytes"
	"encoding/json"
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
		return "the document looks like YAML; want JSON"
	case c == '"' && isName(before):
		return "a colon is missing before it"
	case c == '"' && len(before) > 0:
		return "a comma is missing before it"
	}
	return ""
}

// isName reports whether the beginning of a document ends with the name of a member.
func isName(before []byte) bool {
	d := json.NewDecoder(bytes.NewReader(before))
	type object struct{ is, named bool } // named: the next token is a value
	var open []object
	for {
		t, err := d.Token()
		if err != nil {
			return len(open) > 0 && open[len(open)-1].is && open[len(open)-1].named
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			open = append(open, object{is: t == json.Delim('{')})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if n := len(open); n > 0 {
			open[n-1].named = !open[n-1].named
		}
	}
}
