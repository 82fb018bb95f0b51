package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnescapeAll_UndoesAllLevelsOfEscapes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nothing to undo":                   "nothing to undo",
		`\u0041\u00e9`:                      "Aé",
		`\\u0041\\\\u0042`:                  "AB",
		`\ud83d\ude00 \\ud83d\\ude00`:       "😀 😀",
		`\ud83d alone`:                      "\ufffd alone",
		`\ud83d\u0041`:                      "\ufffdA",
		`\x41\x4`:                           "Ax4",
		`a\nb\\tc\"d\/e\\\\f`:               "a\nb\tc\"d/e\f",
		`\`:                                 "",
		"%41%2541%252541":                   "AAA",
		"100% of %zz":                       "100% of %zz",
		"%25zz":                             "%zz",
		"%5C":                               "",
		"&lt;&#65;&#x41;&amp;lt;&amp;#65;":  "<AA<A",
		"R&D &unknown; &am &#; &lo":         "R&D &unknown; &am &#; &lo",
		"&#65 &#65B &#x41G &amp &ltB &quot": "A AB AG & <B \"",
		`\u{41}\u{1F600}\u{}\u{1234567}`:    "A😀u{}u{1234567}",
		`\U00000041 \U0001f600`:             "A 😀",
		`\101\303\251\400`:                  "Aé400",
		"%u0041%ud83d%ude00%u00":            "A😀%u00",
		"s\u200be\u00adc\u0301r\ufe0fet":    "secret",
		`s\u200bx`:                          "sx",
		"ｓｅｃ\u3000１":                        "sec 1",
		"“quoted” — 漢字 é":                   "“quoted” — 漢字 é",
		"&" + "aaaaaaaaaaaaaaaaaaaaaaaaaaa": "&aaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"\xff%ff":                           "\xff\xff",
	} {
		require.Equal(t, want, string(unescapeAll([]byte(in))), in)
	}
}

// The result does not depend on how much text follows, once there is enough.
func FuzzUnescapeAt(f *testing.F) {
	for _, s := range []string{
		`\u0041`, `\\ud83d\\ude00`, "%252541", "&amp;amp;lt;", `\\\\\\\\\\\\\\\\\\\\x`, "&#x41;",
		"%25%41", "%",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i := range text {
			n, out, m, _ := unescapeAt(text, i)
			if n < 1 || i+n > len(text) || m > len(out) {
				t.Fatalf("%q at %d: %d bytes mean %d", text, i, n, m)
			}
			for end := i + 1; end < len(text); end++ {
				k, part, l, more := unescapeAt(text[:end], i)
				if !more && (k != n || l != m || part != out) {
					t.Fatalf("%q at %d: %q in the first %d bytes, %q in all", text, i, part[:l], end, out[:m])
				}
			}
		}
	})
}
