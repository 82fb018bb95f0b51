package model

import (
	"math/big"
	"regexp"
	"strings"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/strictjson"
)

// A repair may change the notation of a document, and none of its values: the document and the result have
// the same brackets, colons, names, strings, numbers and literals, in the same order.

// tokens reads the tokens of a document in a notation close to JSON.
type tokens struct {
	text string
	i    int
	// list has the tokens: a bracket or colon, s and a string, n and a number, or a literal.
	list []string
	// comma means that a comma was read since the last value.
	comma bool
}

// sameTokens reports whether two documents have the same tokens. It returns false if one of them has text
// whose meaning is not certain.
func sameTokens(a, b string) bool {
	x, y := tokens{text: a}, tokens{text: b}
	if !x.run() || !y.run() || len(x.list) != len(y.list) {
		return false
	}
	for i, token := range x.list {
		if token != y.list[i] {
			return false
		}
	}
	return true
}

// quotes are the marks that begin a string, with those that end it.
var quotes = map[rune]string{'"': `"`, '\'': "'", '`': "`", '“': "”", '‘': "’"} //nolint:gochecknoglobals // a constant

func (t *tokens) run() bool {
	for t.i < len(t.text) {
		c, size := utf8.DecodeRuneInString(t.text[t.i:])
		rest := t.text[t.i:]
		switch {
		case strings.ContainsRune(" \t\r\n\u00a0\uFEFF", c):
			t.i += size
		case strings.HasPrefix(rest, "//") || c == '#':
			line, _, _ := strings.Cut(rest, "\n")
			t.i += len(line)
		case c == ',':
			if t.comma || !t.afterValue() { // between two commas a value is missing
				return false
			}
			t.comma, t.i = true, t.i+1
		case strings.ContainsRune("{}[]:", c):
			if c == ':' && (len(t.list) == 0 || t.list[len(t.list)-1][0] != 's') || (c == '}' || c == ']') && t.last() == ":" {
				return false
			}
			t.append(string(c), 1)
		case strings.HasPrefix(rest, `\"`): // the document was in a string
			if !t.string(len(`\"`), `\"`) {
				return false
			}
		case quotes[c] != "":
			if !t.string(size, quotes[c]) {
				return false
			}
		default:
			if !t.word() {
				return false
			}
		}
	}
	return true
}

func (t *tokens) append(token string, size int) {
	t.list, t.comma, t.i = append(t.list, token), false, t.i+size
}

func (t *tokens) last() string {
	if len(t.list) == 0 {
		return ""
	}
	return t.list[len(t.list)-1]
}

func (t *tokens) afterValue() bool { return t.last() != "" && !strings.Contains("{[:", t.last()) }

// string reads a string. A quote in it that has no backslash is a part of it if it belongs to a quoted word,
// and the string has nothing that could be notation.
func (t *tokens) string(opening int, closing string) bool {
	from := t.i + opening
	inner := false
	for i := from; i < len(t.text); i++ {
		switch {
		case t.text[i] == '\\' && closing[0] != '\\':
			i++
		case !strings.HasPrefix(t.text[i:], closing):
		case t.endsString(i + len(closing)):
			value, ok := stringValue(t.text[from:i], closing, inner)
			t.append("s"+value, i+len(closing)-t.i)
			return ok
		case closing != `"`:
			return false
		default:
			inner = true
		}
	}
	return false
}

// endsString reports whether what follows a quote can follow a string.
func (t *tokens) endsString(at int) bool {
	after := strings.TrimLeft(t.text[at:], " \t\r\n")
	return after == "" || strings.IndexByte(",:}]#", after[0]) >= 0 || strings.HasPrefix(after, "//") ||
		after[0] == '"' && at < len(t.text) && t.text[at] != '"' // without a comma
}

// quotedWord matches text with words in quotes, and without marks of notation.
var quotedWord = regexp.MustCompile(`^(?:[^"{}\[\],:#/+\\]|(?:^| )"[^" ][^"{}\[\],:#/+\\]*")*$`)

// escaped matches an escape, with the character of an invalid one.
var escaped = regexp.MustCompile(`\\(?:["\\/bfnrt']|u[0-9a-fA-F]{4})|\\(.|\n|$)`)

// stringValue returns the value of a string with the content raw. ok is false if it is not certain.
func stringValue(raw, closing string, inner bool) (value string, ok bool) {
	if inner && (closing != `"` || !quotedWord.MatchString(raw)) {
		return "", false
	}
	for _, m := range escaped.FindAllStringSubmatch(raw, -1) {
		if len(m[0]) == 1 || m[1] != "" {
			return "", false
		}
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && raw[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case c == '\\':
			b.WriteString(raw[i : i+2])
			i++
		case c == '"':
			b.WriteString(`\"`)
		case c < ' ':
			b.Write(strictjson.RenderPlain(string(c))[1:])
			s := b.String()
			b.Reset()
			b.WriteString(s[:len(s)-1]) // without the quote
		default:
			b.WriteByte(c)
		}
	}
	return strictjson.String([]byte(`"` + b.String() + `"`))
}

// wordForm matches a name, a number or a literal.
var (
	wordForm   = regexp.MustCompile(`^[A-Za-z0-9_$+.\-]+`)
	numberForm = regexp.MustCompile(`^[+-]?(?:0|[1-9][0-9]*)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,4})?$`)
	nameForm   = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)
)

// word reads a name without quotes, a number or a literal.
func (t *tokens) word() bool {
	w := wordForm.FindString(t.text[t.i:])
	if w == "" {
		return false
	}
	if rest := strings.TrimLeft(t.text[t.i+len(w):], " \t\r\n"); strings.HasPrefix(rest, ":") && nameForm.MatchString(w) {
		t.append("s"+w, len(w))
		return true
	}
	switch w {
	case "true", "True", "TRUE":
		t.append("true", len(w))
	case "false", "False", "FALSE":
		t.append("false", len(w))
	case "null", "None":
		t.append("null", len(w))
	default:
		n, ok := new(big.Rat).SetString(strings.TrimSuffix(w, "."))
		if !ok || !numberForm.MatchString(w) {
			return false
		}
		t.append("n"+n.RatString(), len(w))
	}
	return true
}
