package term_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/term"
)

func TestClean_EscapesControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, äöü, 漢字, 🙂":   "plain, äöü, 漢字, 🙂",
		"\x1b[31mred\x07":     `\u001b[31mred\u0007`,
		"a\nb\tc\r":           `a\u000ab\u0009c\u000d`,
		"a\u202eb\u2066c":     `a\u202eb\u2066c`,
		"zero\u200bwidth":     `zero\u200bwidth`,
		"line\u2028separator": `line\u2028separator`,
		"c1\u009b2J":          `c1\u009b2J`,
	} {
		require.Equal(t, want, term.Clean(text))
	}
}

func TestEscapeJSON_KeepsTheValue(t *testing.T) {
	t.Parallel()
	doc := "{\n  \"a\": \"x\u202e\u009b\U000e0041ü\"\n}"
	escaped := term.EscapeJSON(doc)
	require.Equal(t, "{\n  \"a\": \"x\\u202e\\u009b\\udb40\\udc41ü\"\n}", escaped)
	require.JSONEq(t, doc, escaped)
	require.Equal(t, `{"a":1}`, term.EscapeJSON(`{"a":1}`))
	require.Equal(t, "{\n\t\"a\": 1\n}", term.EscapeJSON("{\r\n\t\"a\": 1\n}"))
}

func TestColored_DefaultsToTerminals(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for choice, want := range map[string]bool{"auto": false, "": false, "always": true, "never": false} {
		got, err := term.Colored(choice, &bytes.Buffer{}, none)
		require.NoError(t, err)
		require.Equal(t, want, got, choice)
	}
	_, err := term.Colored("sometimes", &bytes.Buffer{}, none)
	require.ErrorContains(t, err, "want auto, always or never")
	columns, _ := term.Size(&bytes.Buffer{}, func(string) string { return "132" })
	require.Equal(t, 132, columns)
	columns, _ = term.Size(&bytes.Buffer{}, func(string) string { return "-5" })
	require.Zero(t, columns)
}

func TestPaint_IgnoresUnknownWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, "x", term.Paint("x", "ghost"))
	require.Equal(t, "\x1b[31mx\x1b[0m", term.Paint("x", "failed"))
	require.Equal(t, "✕", term.Glyph("failed"))
	require.Equal(t, "·", term.Glyph("ghost"))
}
