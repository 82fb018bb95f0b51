package redact_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// A value may itself look like an escape, even of invalid UTF-8.
func TestText_FindsAValueThatLooksLikeAnEscape(t *testing.T) {
	t.Parallel()
	const value = "D%ffMJ3_&xgYB<Dj8%41cV"
	s := redact.Compile([]redact.Secret{secret("k", value), secret("half", "abcdefgh%c3")})
	once, err := json.Marshal(value)
	require.NoError(t, err)
	twice, err := json.Marshal(string(once))
	require.NoError(t, err)
	path, err := json.Marshal(url.PathEscape(value))
	require.NoError(t, err)
	for _, text := range []string{
		value, string(once), string(twice), string(path), url.QueryEscape(value),
		url.QueryEscape(url.QueryEscape(value)),
	} {
		got, n := s.Text("<" + text + ">")
		require.Equal(t, 1, n, text)
		require.Contains(t, got, "[REDACTED:k]", text)
		_, all, count := written(s, strings.Split("<"+text+">", "")...)
		require.Equal(t, got, all)
		require.Equal(t, n, count)
	}
	// The last byte of the other value starts a character here.
	got, _ := s.Text(`\u0061bcdefghé`)
	require.Equal(t, `\u0061bcdefghé`, got)
	require.True(t, utf8.ValidString(got))
	_, all, _ := written(s, strings.Split(`\u0061bcdefghé.`, "")...)
	require.Equal(t, `\u0061bcdefghé.`, all)
}
