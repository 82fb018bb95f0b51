package redact

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func patternsOf(texts ...string) []pattern {
	var out []pattern
	for i, t := range texts {
		out = append(out, pattern{text: t, replacement: fmt.Sprintf("<%d>", i)})
	}
	return out
}

// longestAt returns, for every position in text, the longest pattern that ends there. It
// compares each pattern.
func longestAt(texts []string, text string) map[int]int {
	out := map[int]int{}
	for end := 1; end <= len(text); end++ {
		longest := 0
		for _, p := range texts {
			if p != "" && len(p) > longest && strings.HasSuffix(text[:end], p) {
				longest = len(p)
				out[end] = longest
			}
		}
	}
	return out
}

func TestAutomaton_FindsTheLongestPatternAtEveryEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[abc]{0,6}`), 1, 8).Draw(t, "patterns")
		text := rapid.StringMatching(`[abc]{0,40}`).Draw(t, "text")
		a := newAutomaton(patternsOf(texts...))
		got, s := map[int]int{}, int32(0)
		for i := range len(text) {
			s = a.next(s, text[i])
			if m := a.match[s]; m >= 0 {
				got[i+1] = len(a.patterns[m].text)
			}
		}
		require.Equal(t, longestAt(texts, text), got)
	})
}

// pending is the length of the longest suffix that is a prefix of a pattern, and can still
// become a longer match.
func TestAutomaton_PendingIsWhatMayStillBecomeAMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[ab]{1,6}`), 1, 5).Draw(t, "patterns")
		text := rapid.StringMatching(`[ab]{0,20}`).Draw(t, "text")
		a := newAutomaton(patternsOf(texts...))
		s := int32(0)
		for i := range len(text) {
			s = a.next(s, text[i])
			want := 0
			for n := 1; n <= i+1; n++ {
				end := text[i+1-n : i+1]
				for _, p := range texts {
					if len(p) > n && strings.HasPrefix(p, end) {
						want = n
					}
				}
			}
			require.EqualValues(t, want, a.pending[s], "after %q of %q", text[:i+1], texts)
		}
	})
}

func TestAutomaton_FirstOfEqualPatternsCounts(t *testing.T) {
	t.Parallel()
	a := newAutomaton(patternsOf("same", "same", ""))
	s := int32(0)
	for _, c := range []byte("same") {
		s = a.next(s, c)
	}
	require.EqualValues(t, 0, a.match[s])
}

func TestAutomaton_EveryByteValueCanBeLabel(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	texts := []string{all.String()}
	for b := range 256 { // a wide state
		texts = append(texts, string([]byte{byte(b), 'x', 'y'}))
	}
	a := newAutomaton(patternsOf(texts...))
	found := func(text string) bool {
		s := int32(0)
		for i := range len(text) {
			if s = a.next(s, text[i]); a.match[s] >= 0 {
				return true
			}
		}
		return false
	}
	require.True(t, found("..."+all.String()+"..."))
	for b := range 256 {
		require.True(t, found(string([]byte{0, byte(b), 'x', 'y', 0})))
	}
	require.False(t, found("yz"))
}

func TestEncodings_CoverTheUsualEncodings(t *testing.T) {
	t.Parallel()
	got := encodings(`pa"ss/wörd?`)
	for name, want := range map[string]string{
		"plain": `pa"ss/wörd?`, "hex": "70612273732f77c3b672643f", "upper hex": "70612273732F77C3B672643F",
		"base64": base64.RawStdEncoding.EncodeToString([]byte(`pa"ss/wörd`))[:14], "query": "pa%22ss%2Fw%C3%B6rd%3F",
		"lower query": "pa%22ss%2fw%c3%b6rd%3f",
		"JSON":        `pa\"ss/wörd?`, "JSON, slashes": `pa\"ss\/wörd?`, "JSON, ASCII": `pa\"ss/w\u00f6rd?`,
	} {
		if name == "base64" {
			require.True(t, anyHasPrefix(got, want), name)
			continue
		}
		require.Contains(t, got, want, name)
	}
}

func anyHasPrefix(all []string, prefix string) bool {
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// Wherever the value is in the encoded bytes, the text contains one of its encodings.
func TestBase64Encodings_MatchAtEveryAlignment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.Byte(), MinLength, 40).Draw(t, "value")
		before := rapid.SliceOfN(rapid.Byte(), 0, 7).Draw(t, "before")
		after := rapid.SliceOfN(rapid.Byte(), 0, 7).Draw(t, "after")
		whole := append(append(append([]byte{}, before...), value...), after...)
		for _, enc := range []*base64.Encoding{
			base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding,
		} {
			text := enc.EncodeToString(whole)
			found := false
			for _, f := range base64Encodings(string(value)) {
				found = found || strings.Contains(text, f)
			}
			require.True(t, found, text)
		}
	})
}

func TestEncodings_OfALongValueAreTheValueAlone(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxEncoded+1)
	require.Equal(t, []string{long}, encodings(long))
	require.Greater(t, len(encodings(long[1:])), 10)
}

func TestEncodings_OfInvalidUTF8AreEncodedOnly(t *testing.T) {
	t.Parallel()
	for _, f := range encodings("\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8") {
		for i := range len(f) {
			require.Less(t, f[i], byte(0x80), f)
		}
	}
}

func TestASCIIOnly_EscapesAsJSONDoes(t *testing.T) {
	t.Parallel()
	require.Equal(t, `a\u00e9\u6f22\ud83d\ude00`, asciiOnly("aé漢😀"))
}

func TestLowerEscapes_TouchesEscapesOnly(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ABC%2f%c3X%", lowerEscapes("ABC%2F%C3X%"))
}

func TestWholeRunes_NeverSplitsARune(t *testing.T) {
	t.Parallel()
	text := "aé漢😀z"
	for n := range len(text) + 1 {
		got := wholeRunes([]byte(text), n)
		require.LessOrEqual(t, got, n)
		require.Less(t, n-got, 4)
		require.Equal(t, text[:got], strings.ToValidUTF8(text[:got], "?"))
	}
	require.Equal(t, 3, wholeRunes([]byte("\x80\x80\x80\x80"), 3), "what is no UTF-8 is not held back for ever")
	require.Zero(t, wholeRunes(nil, 0))
}
