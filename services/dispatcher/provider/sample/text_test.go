package sample

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestMatching_SatisfiesThePatternAndTheLength(t *testing.T) {
	t.Parallel()
	g := newTestGenerator("Please look at order AB-1234 from jo@example.org.")
	for _, tc := range []struct {
		pattern string
		want    length
		exact   string
	}{
		{`^[A-Z]{2}-\d{4}$`, length{0, 99}, "AB-1234"},
		{`^[a-z]{5,6}$`, length{0, 99}, "please"},
		{`^x{3}$`, length{0, 99}, "xxx"},
		{`^(?:yes|no)$`, length{0, 99}, "yes"},
		{`^[0-9]*$`, length{12, 12}, ""},
		{`^a+b*c?$`, length{20, 40}, ""},
		{`^.{3,}$`, length{9, 9}, ""},
		{`^\p{L}+\s\S+$`, length{0, 99}, ""},
		{`^[^\x00-\x7f]$`, length{1, 1}, ""},
		{`foo`, length{10, 12}, ""},
		{`^((a|b){2}){3}$`, length{0, 99}, ""},
		{`^(([a-z]+-)*[0-9]+_)*end$`, length{0, 99}, "end"},
	} {
		got := g.matching(tc.pattern, "Some sentence of the input that is long", tc.want)
		require.Regexp(t, tc.pattern, got)
		require.True(t, tc.want.holds(got), "%s: %q", tc.pattern, got)
		if tc.exact != "" {
			require.Equal(t, tc.exact, got)
		}
	}
}

func TestMatching_LeavesTheTextWherePatternsCannotBeSatisfied(t *testing.T) {
	t.Parallel()
	g := newTestGenerator("hello")
	for _, pattern := range []string{`(?=x)y`, `[`, `^never$`} {
		require.Equal(t, "text", g.matching(pattern, "text", length{0, 4}))
	}
}

func TestFit_MakesATextAsLongAsItMustBe(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want length
		get  string
	}{
		{"hello world", length{0, 99}, "hello world"},
		{"hello world", length{0, 8}, "hello"},
		{"hello world", length{7, 8}, "hello wo"},
		{"hi", length{5, 9}, "hi sample"},
		{"hi", length{5, 6}, "hi sam"},
		{"", length{0, 0}, ""},
		{"äöüß", length{2, 2}, "äö"},
	} {
		got := tc.want.fit(tc.text)
		require.Equal(t, tc.get, got)
		require.True(t, tc.want.holds(got))
	}
}

func TestSentencesOf_CutsAfterSentencesAndNotInNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"It costs 3.50 EUR", "Why", "I don't know", "Next line",
	}, sentencesOf("It costs  3.50 EUR. Why? I don't know!\n\nNext line"))
}

func TestSource_ExcerptsTellingSentencesRoundAndRound(t *testing.T) {
	t.Parallel()
	s := newSource("Hi. The parcel is late. It never arrived here.")
	require.Equal(t, "The parcel is late", s.excerpt(0, 80))
	require.Equal(t, "It never arrived here", s.excerpt(1, 80))
	require.Equal(t, "The parcel is late", s.excerpt(2, 80))
	require.Equal(t, "The parcel", s.excerpt(0, 12))
	require.Equal(t, "Hi you", newSource("Hi\n you").excerpt(5, 80))
	require.Equal(t, "sample", newSource(" ").excerpt(0, 80))
}

func TestSource_LooksAtABoundedPart(t *testing.T) {
	t.Parallel()
	long := make([]byte, 0, 3*maxSource)
	for range maxSource {
		long = append(long, "ü "...)
	}
	s := newSource(string(long))
	require.LessOrEqual(t, len(s.text), maxSource)
	require.True(t, utf8.ValidString(s.text))
	require.Len(t, s.words, maxWords)
}

func TestFormatted_FindsTheInputsOwnOrTakesAFixedOne(t *testing.T) {
	t.Parallel()
	g := newTestGenerator("Mail jo.doe+x@mail.example.org by 2026-02-03, see http://a.example/b?c=d and 123e4567-e89b-12d3-a456-426614174000")
	any := length{0, 200}
	for format, want := range map[string]string{
		"email":     "jo.doe+x@mail.example.org",
		"date":      "2026-02-03",
		"uri":       "http://a.example/b",
		"uuid":      "123e4567-e89b-12d3-a456-426614174000",
		"date-time": "2026-01-01T00:00:00Z",
		"ipv4":      "192.0.2.1",
	} {
		got, ok := g.formatted(format, any)
		require.True(t, ok, format)
		require.Equal(t, want, got)
	}
	_, ok := g.formatted("binary", any)
	require.False(t, ok, "an unknown format is no constraint")
	_, ok = g.formatted("uuid", length{0, 5})
	require.False(t, ok, "too long for it")
}
