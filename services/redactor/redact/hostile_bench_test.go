package redact_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// hostile are texts of an attacker that are slow to redact.
func hostile() map[string]string {
	const size = 1 << 20
	repeat := func(s string) string { return strings.Repeat(s, size/len(s)) }
	words := strings.Join(redact.DefaultShapes().Words(), " ")
	return map[string]string{
		"words of all rules":          repeat(words + " "),
		"words of all rules, solid":   repeat(strings.ReplaceAll(words, " ", "")),
		"words of all rules, as keys": repeat(strings.ReplaceAll(words, " ", "=") + "="),
		"beginnings of keys":          repeat("sk-sk-sk-"),
		"beginnings of tokens":        repeat("eyJ-"),
		"half a token":                repeat("eyJAAAAAAAAAAAA."),
		"passwords":                   repeat("password=a "),
		"quotes without an end":       repeat(`password="[REDACTED:x]`),
		"values of markers":           repeat("password=[REDACTED:x]"),
		"names without a value":       repeat("secret_secret-"),
		"URLs":                        repeat("a://b:"),
		"URLs and a long authority":   repeat("a://" + strings.Repeat("b:", 2000)),
		"beginnings of blocks":        repeat("-----BEGIN "),
		"headers of blocks":           repeat("-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("A: b\n", 200)),
		"blocks with gaps":            repeat("-----BEGIN PRIVATE KEY-----" + strings.Repeat(" ", 250) + "A"),
		"dashes":                      repeat("-"),
		"backslashes":                 repeat(`\`),
		"percents":                    repeat("%25"),
		"ampersands":                  repeat("&amp;"),
		"names of entities":           repeat("&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		"all escaped":                 repeat(`\u0041`),
		"hex in both cases":           repeat("aA4B"),
		"lines of base64":             repeat(strings.Repeat("QUJD", 16) + "\n"),
		"brackets":                    repeat("[REDACTED:"),
		"secrets":                     repeat(thousand()[0].Value.Reveal() + " "),
		"almost secrets":              repeat(thousand()[0].Value.Reveal()[1:] + " "),
	}
}

// No text may be much slower than others: the limit is 250 ms per MB.
func BenchmarkHostileText(b *testing.B) {
	s := redact.Compile(thousand()).With(redact.DefaultShapes())
	for name, text := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Text(text)
			}
		})
	}
}

// A document of many strings that are compressed bombs: the limit is that of a text.
func BenchmarkHostileDocument(b *testing.B) {
	bomb := base64.StdEncoding.EncodeToString([]byte(gzipped(strings.Repeat("a secret ", 1<<17))))
	doc := []byte(`["` + strings.Repeat(bomb+`","`, 1<<20/(len(bomb)+3)) + `"]`)
	s := redact.Compile(thousand()).With(redact.DefaultShapes())
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, _, err := s.JSON(doc, strictjson.Default); err != nil {
			b.Fatal(err)
		}
	}
}

// The same as a stream of small pieces.
func BenchmarkHostileStream(b *testing.B) {
	s := redact.Compile(thousand()).With(redact.DefaultShapes())
	for name, text := range hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				st := s.Stream()
				for i := 0; i < len(text); i += 16 {
					st.Write(text[i:min(i+16, len(text))])
				}
				st.Close()
			}
		})
	}
}

// Secrets that repeat the characters of escapes, in texts of such escapes: each escape has
// all its readings.
func BenchmarkHostileSecrets(b *testing.B) {
	var secrets []redact.Secret
	for i := range 16 {
		for _, part := range []string{"25", "u0041", "Au0041AAu0041A"} {
			secrets = append(secrets, secret(part+strconv.Itoa(i), strings.Repeat(part, 8+i)+"x"))
		}
	}
	s := redact.Compile(secrets)
	for _, part := range []string{"%25", "%25%32%35", `\u0041`, `\u0041\u0041A`, "%5Cu0041"} {
		b.Run(part, func(b *testing.B) {
			text := strings.Repeat(part, 1<<18/len(part))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Text(text)
			}
		})
	}
}
