// Package term knows what is at the other end of standard input and output: a person
// at a terminal, or a program.
package term

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/term"
)

// IsTTY reports whether a reader or writer is a terminal.
func IsTTY(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // G115: a file descriptor fits an int
}

// Size is that of the terminal at w; 0 where there is none. COLUMNS says how wide
// lines may be where nobody else does.
func Size(w io.Writer, getenv func(string) string) (columns, lines int) {
	if f, ok := w.(*os.File); ok {
		if c, l, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // G115: a file descriptor fits an int
			return c, l
		}
	}
	c, _ := strconv.Atoi(getenv("COLUMNS"))
	return max(c, 0), 0
}

// The choices of --color.
const (
	Auto   = "auto"
	Always = "always"
	Never  = "never"
)

// Colored decides whether w gets colors: never for programs, unless told.
func Colored(choice string, w io.Writer, getenv func(string) string) (bool, error) {
	switch choice {
	case Always:
		return true, nil
	case Never:
		return false, nil
	case Auto, "":
		return IsTTY(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb", nil
	default:
		return false, fmt.Errorf("--color %q: want %s, %s or %s", choice, Auto, Always, Never)
	}
}

// Clean makes visible what a terminal would obey or hide: control characters, and
// those that turn the direction of text. What a model wrote is text, not commands.
func Clean(s string) string {
	if strings.IndexFunc(s, invisible) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if invisible(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// EscapeJSON makes the same characters visible in a JSON document, which stays the same
// document: its strings say them in another way.
func EscapeJSON(doc string) string {
	hidden := func(r rune) bool { return r != '\n' && invisible(r) }
	if strings.IndexFunc(doc, hidden) < 0 {
		return doc
	}
	var b strings.Builder
	for _, r := range doc {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// invisible is what a line of text must not contain.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// Paint colors text by what it says of a run or a check; other text stays as it is.
func Paint(text, word string) string {
	code, ok := paints[word]
	if !ok {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// paints are the colors of words. None is told by its color alone.
var paints = map[string]string{
	"completed":        "32",
	"ok":               "32",
	"accepted":         "32",
	"passed":           "32",
	"failed":           "31",
	"fail":             "31",
	"refused":          "31",
	"stopped":          "31",
	"running":          "34",
	"pending":          "90",
	"skipped":          "90",
	"cancelled":        "90",
	"cancelling":       "90",
	"not reached":      "90",
	"waiting-approval": "33",
	"waiting-input":    "33",
	"waiting-external": "33",
	"warn":             "33",
	"suspended":        "33",
	"retrying":         "33",
	"paused":           "35",
	"dim":              "90",
	"bold":             "1",
}

// Glyph is the sign before the word of a status.
func Glyph(status string) string {
	if g, ok := glyphs[status]; ok {
		return g
	}
	return "·"
}

var glyphs = map[string]string{
	"pending":          "·",
	"running":          "▶",
	"waiting-approval": "?",
	"waiting-input":    "?",
	"waiting-external": "⇄",
	"suspended":        "?",
	"paused":           "‖",
	"cancelling":       "⊘",
	"cancelled":        "⊘",
	"completed":        "✓",
	"failed":           "✕",
	"skipped":          "-",
	"retrying":         "↻",
	"stopped":          "‖",
}
