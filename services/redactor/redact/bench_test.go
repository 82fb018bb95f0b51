package redact_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// thousand returns 1,000 secrets with typical lengths of credentials.
func thousand() []redact.Secret {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // G404: reproducible on purpose
	const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	out := make([]redact.Secret, 1000)
	for i := range out {
		b := make([]byte, 16+r.IntN(48))
		for k := range b {
			b[k] = alphabet[r.IntN(len(alphabet))]
		}
		out[i] = redact.Secret{ID: fmt.Sprint("secret-", i), Value: redact.Value(b)}
	}
	return out
}

const sentence = "The lamp arrived broken; the customer wrote twice, on Monday and on Thursday, and wants the money back. "

func BenchmarkThousandSecretsText(b *testing.B) {
	secrets := thousand()
	prose := strings.Repeat(sentence, 10_000)
	almost := secrets[0].Value.Reveal()
	for name, tc := range map[string]struct {
		scrub *redact.Scrubber
		text  string
	}{
		"prose":              {redact.Compile(secrets), prose},
		"prose, both layers": {redact.Compile(secrets).With(redact.DefaultShapes()), prose},
		"near misses": {
			redact.Compile(secrets).With(redact.DefaultShapes()),
			strings.Repeat(almost[:len(almost)-1]+" ", 1<<20/len(almost)),
		},
		"words of rules": {
			redact.Compile(secrets).With(redact.DefaultShapes()),
			strings.Repeat("password: token= sk-ant- eyJ ghp_ secret ", 1<<20/41),
		},
		"escapes": {
			redact.Compile(secrets).With(redact.DefaultShapes()),
			strings.Repeat(`{\"text\":\"`+sentence+`\"}\n`, 10_000),
		},
		"all secrets": {
			redact.Compile(secrets).With(redact.DefaultShapes()),
			strings.Repeat(almost+" ", 1<<20/(len(almost)+1)),
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(tc.text)))
			for b.Loop() {
				tc.scrub.Text(tc.text)
			}
		})
	}
}

func BenchmarkThousandSecretsJSON(b *testing.B) {
	doc := []byte(`{"items":[` + strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"id":"run_06gzs9m3s1xq16m6ak670468r0","text":%q,"n":[1,2,3.5]},`, sentence), 5000), ",") + `]}`)
	for name, scrub := range map[string]*redact.Scrubber{
		"known": redact.Compile(thousand()), "both layers": redact.Compile(thousand()).With(redact.DefaultShapes()),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if _, _, err := scrub.JSON(doc, strictjson.Limits{MaxBytes: len(doc), MaxDepth: 8}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkThousandSecretsCompile(b *testing.B) {
	secrets := thousand()
	b.ReportAllocs()
	for b.Loop() {
		redact.Compile(secrets)
	}
}
