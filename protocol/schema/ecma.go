package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON Schema patterns are regular expressions of ECMA-262 (JSON Schema 2020-12 core §6.4). Most are
// also valid in Go's syntax, but a few constructs have another spelling or another meaning there.

// Contents of ECMA-262's classes of white space and of all other characters.
const (
	blank    = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	notBlank = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	lineEnds = `\n\r\x{2028}\x{2029}`
)

// goSyntax matches constructs that only Go's syntax has: flags and quoted text. A pattern with one of
// them keeps Go's meaning.
var goSyntax = regexp.MustCompile(`\(\?[a-zA-Z]*-?[a-zA-Z]*[:)]|\\Q|\[\[:`)

// hasGoSyntax reports whether a pattern has a construct that only Go's syntax has. A group without
// a capture, (?:, is in both.
func hasGoSyntax(p string) bool {
	return goSyntax.MatchString(strings.ReplaceAll(p, "(?:", ""))
}

// fromECMA converts a pattern of ECMA-262 to Go's syntax, as far as it differs.
func fromECMA(p string) string {
	if hasGoSyntax(p) || !strings.ContainsAny(p, `\.]`) {
		return p
	}
	t := translator{src: p}
	for t.i < len(p) {
		t.next()
	}
	return t.out.String()
}

// translator copies a pattern and replaces some of its constructs.
type translator struct {
	src     string
	i       int
	inClass bool
	out     strings.Builder
}

func (t *translator) next() {
	switch c := t.src[t.i]; {
	case c == '\\' && t.i+1 < len(t.src):
		t.escape()
		return
	case c == '[' && !t.inClass && t.emptyClass():
		return
	case c == '[' && !t.inClass:
		t.inClass = true
	case c == ']':
		t.inClass = false
	case c == '.' && !t.inClass:
		t.out.WriteString("[^" + lineEnds + "]")
		t.i++
		return
	}
	_, size := utf8.DecodeRuneInString(t.src[t.i:])
	t.out.WriteString(t.src[t.i : t.i+size])
	t.i += size
}

// emptyClass converts [], which matches nothing, and [^], which matches anything. In Go's syntax the
// bracket is the first character of the class.
func (t *translator) emptyClass() bool {
	rest := t.src[t.i:]
	switch {
	case strings.HasPrefix(rest, "[]"):
		t.out.WriteString(`[^\x{0}-\x{10ffff}]`)
		t.i += len("[]")
	case strings.HasPrefix(rest, "[^]"):
		t.out.WriteString(`[\x{0}-\x{10ffff}]`)
		t.i += len("[^]")
	default:
		return false
	}
	return true
}

// escape converts the escape at the current position.
func (t *translator) escape() {
	rest := t.src[t.i+1:]
	switch rest[0] {
	case 's':
		t.class(blank, 2)
	case 'S':
		t.class(notBlank, 2)
	case 'u':
		if r, size, ok := codePoint(rest); ok {
			fmt.Fprintf(&t.out, `\x{%x}`, r)
			t.i += 1 + size
			return
		}
		t.copy(2)
	case 'c':
		if len(rest) > 1 && (rest[1]|0x20) >= 'a' && (rest[1]|0x20) <= 'z' {
			fmt.Fprintf(&t.out, `\x{%x}`, rest[1]%32)
			t.i += 3
			return
		}
		t.copy(2)
	case 'p', 'P':
		t.property()
	default:
		_, size := utf8.DecodeRuneInString(rest)
		t.copy(1 + size)
	}
}

func (t *translator) copy(n int) {
	t.out.WriteString(t.src[t.i : t.i+n])
	t.i += n
}

// class writes the content of a class, in brackets unless it is inside one.
func (t *translator) class(content string, size int) {
	if !t.inClass {
		content = "[" + content + "]"
	}
	t.out.WriteString(content)
	t.i += size
}

var properties = regexp.MustCompile(`^[pP]\{(?:Script|sc|General_Category|gc)=([A-Za-z_]+)\}`)

// property drops the name of a property that Go's syntax implies.
func (t *translator) property() {
	m := properties.FindStringSubmatch(t.src[t.i+1:])
	if m == nil {
		t.copy(2)
		return
	}
	t.out.WriteString(t.src[t.i:t.i+2] + "{" + m[1] + "}")
	t.i += 1 + len(m[0])
}

// codePoint reads uXXXX, two of them that form one character, or u{X}; size is its length in bytes.
func codePoint(s string) (r rune, size int, ok bool) {
	if strings.HasPrefix(s, "u{") {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return 0, 0, false
		}
		n, err := strconv.ParseUint(s[2:end], 16, 32)
		return rune(n), end + 1, err == nil && n <= utf8.MaxRune //nolint:gosec // at most MaxRune
	}
	unit := func(s string) (rune, bool) {
		if len(s) < 5 || s[0] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(s[1:5], 16, 16)
		return rune(n), err == nil //nolint:gosec // 16 bits
	}
	r, ok = unit(s)
	if ok && utf16.IsSurrogate(r) && len(s) > 5 && s[5] == '\\' {
		if low, is := unit(s[6:]); is {
			if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
				return both, 11, true
			}
		}
	}
	return r, 5, ok
}
