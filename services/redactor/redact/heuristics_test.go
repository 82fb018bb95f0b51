package redact

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsWords_DistinguishesWordsFromRandomLetters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ without, with bool }{
		"getPasswordFromVault":          {true, true},
		"sk-learn-compatible-pipeline":  {true, true},
		"X_API_KEY":                     {false, false}, // too short for words
		"OPENAI_API_KEY":                {true, true},
		"HTTPServerOfTheShop":           {true, true},
		"estimators-v2-2026":            {false, true},
		"hunter22":                      {false, true},
		"b4tter1e":                      {false, false},
		"aB3dE5gH7jK9mN1p":              {false, false},
		"kQxZvTrWpLmNbHgF":              {false, false},
		"xkcdqrstvwxyz":                 {false, false},
		"pneumonoultramicroscopicsilic": {false, false}, // too long for one word
		"Tr0ub4dor&3":                   {false, false},
		"12345678":                      {false, false},
		"":                              {false, false},
	} {
		require.Equal(t, want.without, isWords([]byte(text), false), text)
		require.Equal(t, want.with, isWords([]byte(text), true), text)
	}
}

func TestIsReference_RecognizesCodeThatReadsAValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"process.env.X_KEY":              true,
		`os.environ[`:                    true,
		"getPasswordFromVault(ctx":       true,
		"vault(ctx)":                     true,
		"user.credentials.password":      true,
		"Settings::Database.password":    true,
		"this->password_of_user;":        true,
		"hunter22(ab)":                   false,
		"abc(def1234":                    false,
		"aB3dE5gH.7jK9mN1p":              false,
		"password":                       false,
		"9lives.of.cats":                 false,
		"":                               false,
		"a.b3D5eF7gH9jK1mN3pQ5rS7tU9vW1": false,
	} {
		require.Equal(t, want, isReference([]byte(text)), text)
	}
}

func TestIsTemplate_RecognizesTemplates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"${DB_PASS}":      true,
		"{{ .Values.x }}": true,
		"<your-key>":      true,
		"$DB_PASSWORD2":   true,
		"%(password)s":    true,
		"$(cat /run/key)": true,
		"$ecret123":       false,
		"$":               false,
		"pa$$word1":       false,
		"hunter22":        false,
	} {
		require.Equal(t, want, isTemplate([]byte(text)), text)
	}
}

func TestEntropy_IsInBitsPerByte(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"":         0,
		"aaaa":     0,
		"abab":     1,
		"abcd":     2,
		"abcdefgh": 3,
		"aabbccdd": 2,
		"hunter22": 2.75,
	} {
		require.InDelta(t, want, entropy([]byte(text)), 1e-9, text)
	}
}

func TestKindOf_ReadsNamesByTheirParts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		before, word string
		want         kind
	}{
		{"", "password", kindPassword},
		{"PG", "password", kindPassword},
		{"DB_", "pass", kindPassword},
		{"com", "pass", kindNone},
		{"BY", "pass", kindNone},
		{"OLD", "pwd", kindNone},
		{"mysql_", "pwd", kindDirectory},
		{"", "passphrase", kindPhrase},
		{"", "token", kindBareToken},
		{"--", "token", kindBareToken},
		{"refresh", "token", kindKey},
		{"nextPage", "token", kindNone},
		{"page_", "token", kindNone},
		{"tik", "token", kindNone},
		{"x-shop-", "token", kindKey},
		{"client", "secret", kindKey},
	} {
		require.Equal(t, tc.want, kindOf([]byte(tc.before+tc.word), tc.word), tc.before+tc.word)
	}
	require.Equal(t, kindPassword, kindOf([]byte("dbPass"), "pass"))
}

func TestMarkerAt_AcceptsExactMarkersOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"[REDACTED]":       10,
		"[REDACTED:x] y":   12,
		"[REDACTED:a b/c]": 16,
		"[REDACTED:]":      0,
		"[REDACTED:a[b]":   0,
		"[REDACTED:a\nb]":  0,
		"[REDACTEDx]":      0,
		"REDACTED:x]":      0,
		"[redacted:x]":     0,
		"":                 0,
	} {
		n, more := markerAt([]byte(text))
		require.Equal(t, want, n, text)
		require.False(t, more, text)
		for cut := 1; cut < want; cut++ {
			_, more := markerAt([]byte(text[:cut]))
			require.True(t, more, text[:cut])
		}
	}
}
