// Package term detects terminals, and formats and escapes text for them.
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

// Size returns the size of the terminal at w, or 0. Without a terminal, COLUMNS sets the width.
func Size(w io.Writer, getenv func(string) string) (columns, lines int) {
	if f, ok := w.(*os.File); ok {
		if c, l, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // G115: a file descriptor fits an int
			return c, l
		}
	}
	c, _ := strconv.Atoi(getenv("COLUMNS"))
	return max(c, 0), 0
}

// Values of --color.
const (
	Auto   = "auto"
	Always = "always"
	Never  = "never"
)

// Colored reports whether output to w is colored. The default is colors on terminals only.
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

// Clean escapes control characters and characters that change the text direction. Text from models
// must not control the terminal.
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

// EscapeJSON escapes the same characters in a JSON document without changing its value. Line ends and
// tabs between its tokens remain.
func EscapeJSON(doc string) string {
	doc = strings.ReplaceAll(doc, "\r\n", "\n") // white space: a string cannot contain it
	hidden := func(r rune) bool { return r != '\n' && r != '\t' && invisible(r) }
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

// invisible reports characters that Clean escapes.
func invisible(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co)
}

// Paint colors text by a status word. Text with an unknown word is not colored.
func Paint(text, word string) string {
	code, ok := paints[word]
	if !ok {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// paints are the colors of words. Color is never the only information.
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

// Glyph returns the sign of a status.
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
