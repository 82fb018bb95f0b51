package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/redactor/redact"
)

func TestText_FindsSecretsWithJSONEscapes(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{
		secret("k", "sk-live-0001"), secret("odd", "a\"b/c\\d\né😀z"), secret("tilde", "https://~me/"),
	})
	tests := map[string]struct {
		in, want string
		count    int
	}{
		"every sign": {
			`\u0073\u006b\u002d\u006c\u0069\u0076\u0065\u002d\u0030\u0030\u0030\u0031!`, `[REDACTED:k]!`, 1,
		},
		"capitals":                  {`sk\u002Dlive\u002D0001`, `[REDACTED:k]`, 1},
		"one sign":                  {`<s\u006b-live-0001>`, `<[REDACTED:k]>`, 1},
		"the last sign":             {`<sk-live-000\u0031>`, `<[REDACTED:k]>`, 1},
		"short escapes":             {`{"a":"a\"b\/c\\d\né😀z"}`, `{"a":"[REDACTED:odd]"}`, 1},
		"a pair of escapes":         {`a\"b/c\\d\n\u00e9\ud83d\ude00z`, `[REDACTED:odd]`, 1},
		"two layers":                {`"{\"a\":\"a\\\"b/c\\\\d\\né😀z\"}"`, `"{\"a\":\"[REDACTED:odd]\"}"`, 1},
		"two layers of escapes":     {`\\u0073k-live-0001`, `[REDACTED:k]`, 1},
		"as it is, with its escape": {"a\"b/c\\d\né😀z", "[REDACTED:odd]", 1},
		"name in a JSON pointer":    {`/payload/a\"b\~1c\\d\né😀z`, `/payload/[REDACTED:odd]`, 1},
		"name with both of them":    {`/payload/https:\~1\~1~0me\~1/x`, `/payload/[REDACTED:tilde]/x`, 1},
		"marker behind an escape":   {`\n[REDACTED:k]\n`, `\n[REDACTED:k]\n`, 0},
		"behind an escape":          {`\nsk-live-0001\n`, `\n[REDACTED:k]\n`, 1},
		"no escape":                 {`sk_live-0001 \u00 \~0 \ud83d \~`, `sk_live-0001 \u00 \~0 \ud83d \~`, 0},
		"begins again":              {`s\u006bsk-live-0001`, `s\u006b[REDACTED:k]`, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, n := s.Text(tc.in)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.count, n)
			_, all, count := written(s, strings.Split(tc.in, "")...)
			require.Equal(t, tc.want, all)
			require.Equal(t, tc.count, count)
		})
	}
}

// drawEscaped encodes a text like a JSON encoder, character by character.
func drawEscaped(t *rapid.T, text string) string {
	var b strings.Builder
	for _, r := range text {
		quoted, err := json.Marshal(string(r))
		require.NoError(t, err)
		short := string(quoted[1 : len(quoted)-1])
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		case 1:
			if r == '/' {
				short = `\/`
			}
			b.WriteString(short)
		default:
			if len(short) == 2 || r < ' ' { // must be escaped
				b.WriteString(short)
				continue
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}

// everySign escapes every character of a text.
func everySign(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, `\u%04x`, u)
	}
	return b.String()
}

// A secret is redacted with any escapes, once or twice, and any cut. A reader that undoes
// the escapes does not find it.
func TestStream_FindsEscapedSecretsAtAnyCut(t *testing.T) {
	t.Parallel()
	sign := rapid.SampledFrom([]rune(`abnu0"/` + "\né😀")) // a backslash means nothing behind escapes
	rapid.Check(t, func(t *rapid.T) {
		value := string(rapid.SliceOfN(sign, redact.MinLength, 14).Draw(t, "value"))
		s := redact.Compile([]redact.Secret{secret("k", value), secret("other", "abababab")})
		text := string(rapid.SliceOfN(sign, 0, 6).Draw(t, "before")) + value + string(rapid.SliceOfN(sign, 0, 6).Draw(t, "after"))
		layers := rapid.IntRange(0, 2).Draw(t, "layers")
		if layers > 0 {
			text = drawEscaped(t, text)
		}
		if layers > 1 && rapid.Bool().Draw(t, "every sign") {
			text = everySign(text)
		} else if layers > 1 {
			quoted, err := json.Marshal(text)
			require.NoError(t, err)
			text = string(quoted[1 : len(quoted)-1])
		}
		whole, n := s.Text(text)
		require.Positive(t, n, text)
		var pieces []string
		for rest := text; rest != ""; {
			size := min(rapid.IntRange(1, 9).Draw(t, "piece"), len(rest))
			pieces, rest = append(pieces, rest[:size]), rest[size:]
		}
		_, all, count := written(s, pieces...)
		require.Equal(t, whole, all)
		require.Equal(t, n, count)
		for range layers {
			require.NotContains(t, whole, value)
			var decoded string
			if json.Unmarshal([]byte(`"`+whole+`"`), &decoded) != nil {
				return // a marker stands where an escape was
			}
			whole = decoded
		}
		require.NotContains(t, whole, value)
	})
}

// Text with escapes and without secrets does not change.
func TestStream_KeepsEscapes(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "sk-live-0001")})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-z0-9-]|\\u00[0-9a-f]{2}|\\|\\\\|\\n|\\ud83d|sk-live){0,30}`).Draw(t, "text")
		_, all, _ := written(s, strings.Split(text, "")...)
		require.Equal(t, text, all)
		whole, _ := s.Text(text)
		require.Equal(t, text, whole)
	})
}
