package redact

import "bytes"

// kind says what a name promises of its value.
type kind uint8

const (
	kindNone      kind = iota
	kindPassword       // something people type: short, and perhaps a word
	kindDirectory      // the same, or a place: PWD is both
	kindPhrase         // several words
	kindHeader         // a scheme, and a credential
	kindKey            // something a machine made
	kindBareToken      // a token of any kind, such as the id of a correlation
)

// Bounds of an assignment, in bytes.
const (
	maxName            = 64
	maxSpaces          = 16
	minPassword        = MinLength
	minKey             = 12
	minKeyEntropy      = 3.0
	minPasswordEntropy = 2.0
)

// cursor steps through text that may end too early.
type cursor struct {
	s     *shapeScan
	i     int
	short bool // the text ended where more of it counted
}

// peek gives the byte at the cursor, 0 at the end.
func (c *cursor) peek() byte {
	if c.i < len(c.s.text) {
		return c.s.text[c.i]
	}
	c.short = true
	return 0
}

// spaces steps over a few blanks, and tells how many.
func (c *cursor) skipSpaces() int {
	n := 0
	for n < maxSpaces && (c.peek() == ' ' || c.peek() == '\t') {
		c.i++
		n++
	}
	return n
}

// quote steps over a quote with the backslashes before it.
func (c *cursor) skipQuote() (q byte, level int) {
	from := c.i
	for _, coded := range []string{"&quot;", "&#34;", "&#39;", "%22", "%27", `\u0022`, `\\u0022`} {
		if c.skipText(coded) {
			return 0, 0 // what it ends is no longer quoted, for us
		}
	}
	for c.peek() == '\\' && c.i-from < maxSlashes {
		c.i++
	}
	if q := c.peek(); isQuote(q) {
		c.i++
		return q, c.i - from - 1
	}
	c.i = from
	return 0, 0
}

// sep steps over what stands between a name and its value.
func (c *cursor) skipSeparator() bool {
	switch c.peek() {
	case '=':
		c.i++
		for n := 0; n < 2 && (c.peek() == '=' || c.peek() == '>'); n++ {
			c.i++
		}
		return true
	case ':':
		c.i++
		switch c.peek() {
		case '=':
			c.i++
		case '/':
			return !c.skipText("//") // a URL
		}
		return true
	case '%':
		for _, want := range []string{"%3D", "%3d", "%3A", "%3a"} {
			if c.skipText(want) {
				return true
			}
		}
	}
	return false
}

// take steps over a text if it is there.
func (c *cursor) skipText(want string) bool {
	rest := c.s.text[c.i:]
	if len(rest) < len(want) {
		c.short = c.short || bytes.HasPrefix([]byte(want), rest)
		return false
	}
	if string(rest[:len(want)]) != want {
		return false
	}
	c.i += len(want)
	return true
}

// failed is the verdict where something is missing.
func (c *cursor) noMatchOrMore() verdict {
	if c.short {
		return verdict{state: needMore}
	}
	return verdict{}
}

// readAssignment finds the value behind a name such as DB_PASSWORD: in code, in
// settings, in JSON, in a query.
func readAssignment(s *shapeScan, _ *shape, word string, at int) verdict {
	i := at + len(word)
	c := &cursor{s: s, i: i}
	for n := 0; n < 2 && isDigit(c.peek()); n++ {
		c.i++
	}
	option := c.i
	c.skipQuote()
	if c.peek() == ']' {
		c.i++
	}
	blanks, result := c.skipSpaces(), false
	if next := c.peek(); next != '=' && next != ':' && next != '%' && next != '>' && blanks == 0 {
		return c.noMatchOrMore() // nearly always
	}
	from := s.nameStart(at)
	k := kindOf(s.text[from:i], word)
	if k == kindNone {
		return verdict{}
	}
	switch {
	case c.skipSeparator():
		result = c.skipSpaces() > 0 && i-from == len("pass")
	case c.peek() == '>' && from > 0 && s.text[from-1] == '<': // <password>
		c.i++
	case blanks > 0 && c.i == option+blanks && bytes.HasPrefix(s.text[from:], []byte("--")): // --password x
	case blanks > 0 && c.skipText("is "): // the password is x
		c.skipSpaces()
	default:
		return c.noMatchOrMore()
	}
	q, level := c.skipQuote()
	switch {
	case c.short:
		return verdict{state: needMore}
	case result && q == 0: // PASS: TestAll
		return verdict{}
	}
	return s.readValue(c.i, k, q, level)
}

// name gives where the name begins that goes on at i.
func (s *shapeScan) nameStart(i int) int {
	from := i
	for from > 0 && i-from < maxName && isName(s.text[from-1]) {
		from--
	}
	if from > 0 && from < i && s.isEscapedChar(from) {
		from++
	}
	return from
}

func isName(c byte) bool { return isWord(c) || c == '-' || c == '.' }

// value judges what stands at i, in quotes or not.
func (s *shapeScan) readValue(i int, k kind, q byte, level int) verdict {
	t := tail{kind: runTail, class: s.shapes.bare}
	if q != 0 {
		t = tail{kind: quoteTail, quote: q, level: level}
	}
	end, ended := t.extend(s, i)
	ended = ended || s.closed
	v := s.sample(i, end)
	if !ended && len(v) < sampleSize && end-i < maxSample {
		return verdict{state: needMore}
	}
	if !k.isSecret(v, q != 0) {
		return verdict{}
	}
	return verdict{state: matched, start: i, end: end, grows: !ended, tail: t}
}

// keeps reports whether a value is one that must not be shown.
func (k kind) isSecret(v []byte, quoted bool) bool {
	if len(v) < minPassword && k != kindHeader || isTemplate(v) || isDigest(v) || isReference(v) || isPlaceholder(v) {
		return false
	}
	switch k {
	case kindHeader:
		return len(v) >= minCredential && !isWords(v, false)
	case kindPhrase:
		return entropy(v) >= minPasswordEntropy && (quoted || !isWords(v, false))
	case kindDirectory:
		if isPath(v) {
			return false
		}
		fallthrough
	case kindPassword:
		return entropy(v) >= minPasswordEntropy && (quoted && bytes.IndexByte(v, ' ') < 0 || !isWords(v, false)) && !isProse(v)
	}
	if len(v) < minKey || k == kindBareToken && isUUID(v) || isURL(v) {
		return false
	}
	return entropy(v) >= minKeyEntropy && !isWords(v, true) && !isProse(v)
}

// isProse reports several words, none of which is a tangle of letters and digits.
func isProse(v []byte) bool {
	if bytes.IndexByte(v, ' ') < 0 {
		return false
	}
	for _, w := range bytes.Fields(v) {
		letters, digits := 0, 0
		for _, c := range w {
			if isDigit(c) {
				digits++
			} else if isLetter(c) {
				letters++
			}
		}
		if len(w) >= 6 && letters > 1 && digits > 0 {
			return false
		}
	}
	return true
}

// kindOf tells what a name promises that ends with a word of the rule.
func kindOf(name []byte, word string) kind {
	before := name[:len(name)-len(word)]
	hump := len(before) == 0 || !isLetter(before[len(before)-1]) && !isDigit(before[len(before)-1]) ||
		isUpper(name[len(before)]) && !isUpper(before[len(before)-1])
	switch word {
	case "pass", "pwd":
		if !hump {
			return kindNone // compass
		}
		if word == "pwd" {
			return kindDirectory
		}
		return kindPassword
	case "passphrase":
		return kindPhrase
	case "password", "passwd":
		return kindPassword
	case "token":
		return tokenKind(before, hump)
	}
	return kindKey
}

// tokenKind tells tokens that open something from those that mark a place: those
// of pages and of vocabularies.
func tokenKind(before []byte, hump bool) kind {
	low := make([]byte, 0, maxName)
	for _, c := range before {
		if isLetter(c) || isDigit(c) {
			low = append(low, c|0x20)
		}
	}
	if len(low) == 0 {
		return kindBareToken
	}
	for _, place := range []string{
		"page", "next", "prev", "previous", "continuation", "cursor", "pagination", "sync", "resume", "correlation", "idempotency", "request", "trace",
		"eos", "bos", "pad", "sep", "cls", "mask", "unk", "stop", "eot", "special", "end", "start", "first", "last", "max", "min",
	} {
		if bytes.HasSuffix(low, []byte(place)) {
			return kindNone
		}
	}
	if hump {
		return kindKey
	}
	for _, opens := range []string{"access", "auth", "refresh", "id", "api", "bot", "user", "session", "csrf", "xsrf", "bearer", "secret", "personal", "my"} {
		if bytes.HasSuffix(low, []byte(opens)) {
			return kindKey
		}
	}
	return kindNone // tiktoken
}
