package redact_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"mime/quotedprintable"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

func quotedPrintable(s string) string {
	var b strings.Builder
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return b.String()
}

// layered are spellings that encoders make in more than one step, and those that only a whole text
// shows.
func layered() []encoding {
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	raw := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	in16 := func(s string) string { return hex.EncodeToString([]byte(s)) }
	in32 := func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) }
	in76 := func(s string) string { return wrap(s, 76, "\n") }
	percent := func(s string) string {
		return each(s, func(_ int, c string) string { return fmt.Sprintf("%%%02X", c) })
	}
	numbers := func(join string) func(string) string {
		return func(s string) string {
			return strings.TrimSuffix(each(s, func(_ int, c string) string { return fmt.Sprint(c[0]) + join }), join)
		}
	}
	chain := func(each ...func(string) string) func(string) string {
		return func(s string) string {
			for _, f := range each {
				s = f(s)
			}
			return s
		}
	}
	return []encoding{
		{"base64 of base64", chain(std, std)},
		{"base64url of base64url", chain(raw, raw)},
		{"base64, three times", chain(std, std, std)},
		{"base64, four times", chain(std, std, std, std)},
		{"base64 of base64, each in lines", chain(std, in76, std, in76)},
		{"base64 of base64 in lines, in JSON", chain(std, in76, std, in76, inJSON)},
		{"base64 of base64 in a query", chain(std, std, url.QueryEscape)},
		{"base64 of hex", chain(in16, std)},
		{"hex of base64", chain(std, in16)},
		{"hex of base64, upper case", chain(std, in16, strings.ToUpper)},
		{"hex of base64, both cases", chain(std, in16, bothCases)},
		{"hex of hex", chain(in16, in16)},
		{"base32", in32},
		{"base32, lower case", chain(in32, strings.ToLower)},
		{"base32 in lines", chain(in32, in76)},
		{"base64 of base32", chain(in32, std)},
		{"base32 of base64", chain(std, in32)},
		{"base64 of a query", chain(url.QueryEscape, std)},
		{"base64 of every byte in percent", chain(percent, std)},
		{"base64 of every character as an entity", chain(func(s string) string {
			return eachRune(s, func(r rune) string { return fmt.Sprintf("&#%d;", r) })
		}, std)},
		{"base64 of HTML", chain(html.EscapeString, std)},
		{"base64 of JSON in JSON", chain(inJSON, inJSON, std)},
		{"base64 of zero-width characters", chain(func(s string) string {
			return eachRune(s, func(r rune) string { return string(r) + `\u200b` })
		}, std)},
		{"hex of UTF-16", func(s string) string { return hex.EncodeToString(utf16LE(s)) }},
		{"base64 of gzip", chain(gzipped, std)},
		{"hex of gzip", chain(gzipped, in16)},
		{"base64 of zlib in lines", chain(deflated, std, in76)},
		{"base64 of gzip of base64", chain(std, gzipped, std)},
		{"quoted-printable", quotedPrintable},
		{"quoted-printable, every byte", func(s string) string {
			return each(s, func(_ int, c string) string { return fmt.Sprintf("=%02X", c[0]) })
		}},
		{"quoted-printable in narrow lines", func(s string) string { return wrap(s, 10, "=\r\n") }},
		{"numbers", numbers(", ")},
		{"numbers without blanks", numbers(",")},
		{"numbers in columns", numbers("  ")},
		{"base64 of numbers", chain(numbers(","), std)},
	}
}

var layeredValues = []string{
	"correct-horse-0001", "Zk3vQ9xW-7hJ2mN5pR8tB1cD4fG6", "4929123456789012", "p4ss word/with+signs=&<more>", "AbCdEf01",
	"a-longer-secret-of-more-than-one-line/0123456789/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOP+==",
}

// Each spelling is found wherever the value is in the encoded text, and in a JSON document.
func TestText_FindsLayersOfEncodings(t *testing.T) {
	t.Parallel()
	for _, value := range layeredValues {
		s := redact.Compile([]redact.Secret{secret("k", value), secret("other", "some-other-secret-value")})
		for _, e := range layered() {
			for before := range 9 {
				text := e.of("user=" + tangled(before) + " password=" + value + " " + tangled(before%4))
				for _, in := range []string{text, "Grüße, 100% & more: " + text + " - and on."} {
					got, n := s.Text(in)
					require.Positive(t, n, "%s, %d bytes before: %q", e.name, before, in)
					require.Contains(t, got, "[REDACTED:k]")
					again, n := s.Text(got)
					require.Equal(t, got, again, e.name)
					require.Zero(t, n, e.name)
				}
				doc, err := json.Marshal(map[string]any{"text": text})
				require.NoError(t, err)
				got, n, err := s.JSON(doc, strictjson.Default)
				require.NoError(t, err)
				require.Positive(t, n, "%s: %s", e.name, doc)
				require.True(t, json.Valid(got))
			}
		}
	}
}

// The value alone, encoded, leaves no more than some bits of its last characters.
func TestText_LeavesNoPartOfALayeredSecret(t *testing.T) {
	t.Parallel()
	const value = "Zk3vQ9xW-7hJ2mN5pR8tB1cD4fG6"
	s := redact.Compile([]redact.Secret{secret("k", value)})
	for _, e := range layered() {
		got, n := s.Text(e.of(value))
		require.Positive(t, n, e.name)
		require.LessOrEqual(t, len(got), len("[REDACTED:k]")+16, "%s: %s", e.name, got)
	}
}

func TestText_FindsAValueThatBlanksSplit(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "Zk3vQ9xW-7hJ2mN5pR8t"), secret("card", "4929123456789012"), secret("word", "a-word-of-letters")})
	for in, want := range map[string]string{
		"a Zk3vQ9xW-7hJ\n2mN5pR8t b":              "a [REDACTED:k] b",
		"a Zk3vQ9x\r\n    W-7hJ2m\tN5pR8t b":      "a [REDACTED:k] b",
		"Z k 3 v Q 9 x W - 7 h J 2 m N 5 p R 8 t": "[REDACTED:k]",
		"card 4929 1234 5678 9012, valid":         "card [REDACTED:card], valid",
		"a-word-of-\nletters":                     "a-word-of-\nletters", // see docs/redaction.md
	} {
		got, _ := s.Text(in)
		require.Equal(t, want, got)
	}
}

// An array of numbers is a string afterwards, like a number.
func TestJSON_FindsTheBytesOfASecretInAnArray(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "correct-horse-0001")})
	list := func(text string) string {
		b, err := json.Marshal(map[string]any{"a": []int{1, 2}, "type": "Buffer", "data": numbersOf(text), "z": true})
		require.NoError(t, err)
		return string(b)
	}
	got, n, err := s.JSON([]byte(list("user correct-horse-0001!")), strictjson.Default)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.JSONEq(t, `{"a":[1,2],"type":"Buffer","data":"[REDACTED:k]","z":true}`, string(got))

	got, n, err = s.JSON([]byte(`{"d":[99,111,114,114,101,99,116,45,104,111,114,115,101,45,48,48,48,49]}`), strictjson.Default)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.JSONEq(t, `{"d":"[REDACTED:k]"}`, string(got))

	same := list("user correct-horse-0002!")
	got, n, err = s.JSON([]byte(same), strictjson.Default)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, same, string(got))
}

func numbersOf(text string) (out []int) {
	for i := range len(text) {
		out = append(out, int(text[i]))
	}
	return out
}

// A compressed bomb is read up to a limit.
func TestText_LimitsWhatItInflates(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "correct-horse-0001")})
	bomb := base64.StdEncoding.EncodeToString([]byte(gzipped(strings.Repeat("\x00", 64<<20) + "correct-horse-0001")))
	text := strings.Repeat(bomb+" ", 20)
	got, n := s.Text(text)
	require.Zero(t, n)
	require.Equal(t, text, got)
}

// The texts of a call share the allowance: the first bomb uses it up, and after it a text has only a budget for
// its length.
func TestJSON_LimitsWhatItInflatesOfAllStrings(t *testing.T) {
	t.Parallel()
	const value = "correct-horse-0001"
	s := redact.Compile([]redact.Secret{secret("k", value)})
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(gzipped(text))) }
	bomb := encode(strings.Repeat("\x00", 64<<20))
	late := encode(strings.Repeat("\x00", 900<<10) + value)
	near := encode(value)
	strings := func(all ...string) []byte {
		doc, err := json.Marshal(all)
		require.NoError(t, err)
		return doc
	}
	for doc, want := range map[string]int{
		string(strings(late)):                     1,
		string(strings(late, bomb)):               1,
		string(strings(bomb, late)):               0,
		string(strings(bomb, near, late)):         1,
		string(strings(late, late)):               1,
		string(strings(bomb, bomb, value, value)): 2,
	} {
		_, n, err := s.JSON([]byte(doc), strictjson.Default)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	call := s.Call(t.Context())
	_, n, err := call.Text(bomb)
	require.NoError(t, err)
	require.Zero(t, n)
	_, n, err = call.JSON(strings(late, near), strictjson.Default)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestCall_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "correct-horse-0001")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call := s.Call(ctx)
	_, _, err := call.Text("correct-horse-0001")
	require.ErrorIs(t, err, context.Canceled)
	out, _, err := call.JSON([]byte(`["correct-horse-0001"]`), strictjson.Default)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, out)
}

// All optional fields of a header (RFC 1952 §2.3.1), with lengths whose bytes share bits.
func TestText_FindsASecretAfterFieldsOfGzip(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "correct-horse-0001")})
	for _, size := range []int{1, 2, 3, 6, 254, 255, 256, 510, 511, 767} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Extra, w.Name, w.Comment = bytes.Repeat([]byte{'x'}, size), "name", "comment"
		_, err := w.Write([]byte("correct-horse-0001"))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		_, n := s.Text(base64.StdEncoding.EncodeToString(b.Bytes()))
		require.Equal(t, 1, n, size)
	}
}

// What other programs wrote stays: digests, ids, images, code.
func TestText_KeepsEncodedTextWithoutSecrets(t *testing.T) {
	t.Parallel()
	s := redact.Compile(thousand())
	for _, text := range []string{
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat(sentence, 40))),
		base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(sentence)))),
		hex.EncodeToString([]byte(sentence)), base32.StdEncoding.EncodeToString([]byte(sentence)),
		base64.StdEncoding.EncodeToString([]byte(gzipped(strings.Repeat(sentence, 40)))),
		"[1, 2, 3, 74, 111, 104, 110, 46, 115, 109, 105, 116, 104]", "a=41=42=43 b\n c",
	} {
		got, n := s.Text(text)
		require.Zero(t, n)
		require.Equal(t, text, got)
	}
}
