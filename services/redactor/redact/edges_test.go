package redact_test

import (
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/redactor/redact"
)

// Characters before or after a value, or at its ends, may look like parts of an escape.
func TestText_FindsAValueNextToTextThatLooksLikeAnEscape(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ value, in, want string }{
		"a per cent sign before escapes of JSON": {
			"bb1üébbéé", `%\u0062\u0062\u0031\u00fc\u00e9\u0062\u0062\u00e9\u00e9`, `%[REDACTED:k]`,
		},
		"before escapes of URLs, twice": {
			"bb1üébbéé", `%%2562%2562%2531%25c3%25bc%25c3%25a9%2562%2562%25c3%25a9%25c3%25a9`,
			`%[REDACTED:k]`,
		},
		"before its first bytes as they are": {"bb1üébbéé", `%bb1\u00FC\u00E9bb\u00E9\u00E9!`, `%[REDACTED:k]!`},
		"escaped itself":                     {"bb1ü-bbéé", `%25bb1\u00FC-bb\u00E9\u00E9!`, `%25[REDACTED:k]!`},
		"a backslash before an n":            {"n3w pass-word", `C:\n3w%20pass-word.`, `C:\[REDACTED:k].`},
		"a backslash before a u":             {"u0041 pass-word", `\u0041%20pass-word`, `\[REDACTED:k]`},
		"an ampersand before a name":         {"lt;pass<word>", `&lt;pass&lt;word&gt;`, `&[REDACTED:k]`},
		"an ampersand escaped twice":         {"lt;pass<word>", `&amp;amp;lt;pass&lt;word&gt;`, `&amp;amp;[REDACTED:k]`},
		"digits behind a per cent sign":      {"abcdefgh%", `\u0061bcdefgh%41`, `[REDACTED:k]41`},
		"a digit behind one and a digit":     {"abcdefgh%4", `\u0061bcdefgh%25412`, `[REDACTED:k]12`},
		"a name behind an ampersand":         {"abcdefgh&", `%61bcdefgh&lt;`, `[REDACTED:k]lt;`},
		"the rest of a name":                 {"abcdefgh&l", `%61bcdefgh&amp;lt;`, `[REDACTED:k]t;`},
		"signs at both ends":                 {"ab1üébbé%a", `%\u0061b1üébbé%ab\u0062`, `%[REDACTED:k]b\u0062`},
		"a backslash behind": {
			`&/a>%a<+a"%%`,
			html.EscapeString(`&/a>%a<+a"%%`) + `\aaaaaaabaabbb`,
			`[REDACTED:k]\aaaaaaabaabbb`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redact.Compile([]redact.Secret{secret("k", tc.value)})
			got, n := s.Text(tc.in)
			require.Equal(t, tc.want, got)
			require.Equal(t, 1, n)
			_, all, count := written(s, strings.Split(tc.in, "")...)
			require.Equal(t, got, all)
			require.Equal(t, n, count)
		})
	}
}

// drawLayer encodes a text like some encoder; first: the text is not encoded yet. Encoders
// that escape only some letters must be the first: see docs/redaction.md.
func drawLayer(t *rapid.T, text string, first bool) string {
	last := 5
	if first {
		last = 6
	}
	switch rapid.IntRange(0, last).Draw(t, "layer") {
	case 0:
		quoted := inJSON(text)
		return quoted[1 : len(quoted)-1]
	case 1:
		return url.QueryEscape(text)
	case 2:
		return html.EscapeString(text)
	case 3:
		return everySign(text)
	case 4:
		return each(text, func(_ int, c string) string { return fmt.Sprintf("%%%02x", c) })
	case 5:
		return eachRune(text, func(r rune) string { return fmt.Sprintf("&#%d;", r) })
	default:
		return drawEscaped(t, text)
	}
}

// around are characters around a value, and edges are starts and ends of a value. Together
// they look like escapes.
const (
	around = `([%\\&]|%2|%25|&#|&amp;|\\u00|[0-9a-f]){0,3}`
	edges  = `([0-9a-f]{2}|u00[0-9a-f]{2}|[nt]|lt;|amp;|#3[0-9];)?`
)

// drawEdged draws a value of distinct letters, with special characters after some.
func drawEdged(t *rapid.T, letters, signs string) string {
	edge, value := rapid.StringMatching(edges), ""
	for _, r := range rapid.Permutation([]rune(letters)).Draw(t, "letters")[:redact.MinLength] {
		value += string(r) + rapid.StringMatching(signs).Draw(t, "within")
	}
	return edge.Draw(t, "first") + value + edge.Draw(t, "last") + rapid.StringMatching(`([%&\\]|%[0-9a-f])?`).Draw(t, "sign")
}

// The value is redacted with any text around it, any ends, and any escapes. A stream has the
// same result, and redacting the result again changes nothing.
func TestStream_FindsAValueWithAnyEnds(t *testing.T) {
	t.Parallel()
	signs := rapid.StringMatching(around)
	rapid.Check(t, func(t *rapid.T) {
		value := drawEdged(t, "ghijkéü-", ``)
		s := redact.Compile([]redact.Secret{secret("k", value)})
		text := signs.Draw(t, "before") + value + signs.Draw(t, "after") + rapid.StringMatching(edges).Draw(t, "behind")
		for i := range rapid.IntRange(1, 2).Draw(t, "layers") {
			text = signs.Draw(t, "outside") + drawLayer(t, text, i == 0) + signs.Draw(t, "behind all")
		}
		got, n := s.Text(text)
		require.Positive(t, n, "value %q, text %q", value, text)
		requireSettled(t, s, text)
		require.NotContains(t, got, value)
	})
}

// The same with two values, which may be adjacent and contain special characters. After one
// is redacted, its neighbours must not form an escape, and nothing more is found.
func TestText_IsStableForAdjacentValues(t *testing.T) {
	t.Parallel()
	signs := rapid.StringMatching(around)
	rapid.Check(t, func(t *rapid.T) {
		values := []string{drawEdged(t, "abcdefghijk", `[%\\&é<>"]?`), drawEdged(t, "abcdefghijk", `[&é<>"]?`)}
		s := redact.Compile([]redact.Secret{secret("k", values[0]), secret("l", values[1])})
		t.Logf("values %q", values)
		text := ""
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := rapid.SampledFrom(values).Draw(t, "part")
			for i := range rapid.IntRange(0, 2).Draw(t, "layers") {
				part = drawLayer(t, part, i == 0)
			}
			text += part + signs.Draw(t, "between")
		}
		if rapid.Bool().Draw(t, "another layer") {
			text = drawLayer(t, text, false)
		}
		requireSettled(t, s, text)
	})
}

// requireSettled asserts that a stream has the result of the whole text, and that the
// result is stable.
func requireSettled(t require.TestingT, s *redact.Scrubber, text string) {
	got, n := s.Text(text)
	_, all, count := written(s, strings.Split(text, "")...)
	require.Equal(t, got, all, "%q in a stream", text)
	require.Equal(t, n, count)
	again, n := s.Text(got)
	require.Equal(t, got, again, "%q, redacted again", text)
	require.Zero(t, n)
}

// A regression: one value was only found after its neighbour was redacted.
func TestText_FindsBothAdjacentValues(t *testing.T) {
	t.Parallel()
	const value, neighbour = `&/a>%a<+a"%%`, "aaaaaaabaabbb"
	s := redact.Compile([]redact.Secret{secret("k", value), secret("l", neighbour)})
	text := html.EscapeString(value) + `\` + neighbour
	got, _ := s.Text(text)
	require.Equal(t, `[REDACTED:k]\[REDACTED:l]`, got)
	requireSettled(t, s, text)
}

// A value may be found in several readings. The matches share a marker, even if the match
// with the marker ends first.
func TestText_CoveredMatchesHaveNoMarker(t *testing.T) {
	t.Parallel()
	const value = `&&&&&&&-\`
	s := redact.Compile([]redact.Secret{secret("k", value)})
	text := value + `\u0026\u0026\u0026\u0026\u0026\u0026\u0026-\\`
	got, n := s.Text(text)
	require.Equal(t, "[REDACTED:k]", got)
	require.Equal(t, 1, n)
	requireSettled(t, s, text)
}
