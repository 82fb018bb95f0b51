package redact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecodedText_DecodesUnicodeEscapes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, read string }{
		"none":                     {`plain "text" \n \" \/`, `plain "text" \n \" \/`},
		"one":                      {`a\u0062c`, "abc"},
		"capital digits":           {`\u00E9`, "é"},
		"of a string in a string":  {`\\u0061 \\\\u0062`, "a b"},
		"many backslashes":         {`\\\\\u0061`, "a"},
		"a pair":                   {`\ud83d\ude00`, "😀"},
		"a backslash before one":   {`\n\u0061`, `\na`},
		"cut short":                {`\u00`, `\u00`},
		"no digits":                {`\u00xy\u0061`, `\u00xya`},
		"half a pair":              {`\ud83d`, "\uFFFD"},
		"backslashes at the end":   {`a\\`, `a\\`},
		"an escape for backslash":  {`\u005cu0061`, `\u0061`},
		"signs of several bytes":   {`é\u6f22é`, "é漢é"},
		"bytes that are no letter": {"\xff\\u0061", "\xffa"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := range len(tc.text) + 1 {
				v := &decodedText{}
				got := v.write(nil, []byte(tc.text[:cut]), false)
				got = v.write(got, []byte(tc.text[cut:]), true)
				require.Equal(t, tc.read, string(got), "cut at %d", cut)
				require.Equal(t, tc.text, string(v.original(0, len(got))), "cut at %d", cut)
				v.trim(len(got))
				require.Empty(t, v.raw)
			}
		})
	}
}

// Text around a find in decoded text keeps its escapes.
func TestShapes_KeepEscapesAroundAFind(t *testing.T) {
	t.Parallel()
	var secret strings.Builder
	for _, c := range "ghp_" + strings.Repeat("aB3dE5", 6) {
		fmt.Fprintf(&secret, `\u%04x`, c)
	}
	for name, tc := range map[string]struct{ in, want string }{
		"all of it": {
			`\u003ctd\u003e` + secret.String() + `\u003c`,
			`\u003ctd\u003e[REDACTED:shape.github-token]\u003c`,
		},
		"the sign before it alone": {
			`\u003ctd\u003eghp_` + strings.Repeat("aB3dE5", 6) + `\u003c`,
			`\u003ctd\u003e[REDACTED:shape.github-token]\u003c`,
		},
		"none": {`\u003ctd\u003e nothing \u003c`, `\u003ctd\u003e nothing \u003c`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := DefaultShapes().Replace(tc.in)
			require.Equal(t, tc.want, got)
			for cut := range len(tc.in) {
				s := newShapeStream(DefaultShapes())
				a, _ := s.write([]byte(tc.in[:cut]))
				b, _ := s.write([]byte(tc.in[cut:]))
				c, _ := s.close()
				require.Equal(t, tc.want, string(a)+string(b)+string(c), "cut at %d", cut)
			}
		})
	}
}
