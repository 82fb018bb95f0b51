package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// A secret of digits is found in a number, whatever way the number is written.
func TestJSON_FindsSecretsInNumbers(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("card", "4929123456789012"), secret("pin", "5555000011")}).With(redact.DefaultShapes())
	for in, want := range map[string]string{
		`{"card":4929123456789012}`:               `{"card":"[REDACTED:card]"}`,
		`[-4929123456789012, 1]`:                  `["[REDACTED:card]", 1]`,
		`4929123456789012`:                        `"[REDACTED:card]"`,
		`[49291234567890120]`:                     `["[REDACTED:card]"]`,
		`[4929123456789012.00]`:                   `["[REDACTED:card]"]`,
		`[4.929123456789012e15]`:                  `["[REDACTED:card]"]`,
		`[4.929123456789012E+15]`:                 `["[REDACTED:card]"]`,
		`[555500001.1e1]`:                         `["[REDACTED:pin]"]`,
		`{"a":{"b":[{"c":4929123456789012}]}}`:    `{"a":{"b":[{"c":"[REDACTED:card]"}]}}`,
		`{"4929123456789012":4929123456789012}`:   `{"[REDACTED:card]":"[REDACTED:card]"}`,
		`[4929123456789013,1e999999999,0.1,-0]`:   `[4929123456789013,1e999999999,0.1,-0]`,
		`{"n":55550000110000000000.5,"t":"text"}`: `{"n":"[REDACTED:pin]","t":"text"}`,
	} {
		got, n, err := s.JSON([]byte(in), strictjson.Default)
		require.NoError(t, err, in)
		require.Equal(t, want, string(got), in)
		require.Equal(t, want != in, n > 0, in)
		again, n, err := s.JSON(got, strictjson.Default)
		require.NoError(t, err)
		require.Zero(t, n, in)
		require.Equal(t, want, string(again), in)
	}
}

// Numbers stay as they are if no secret can be in one.
func TestJSON_LeavesNumbersAlone(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "no-digits-here")})
	const doc = `[4929123456789012,1.0,1e5]`
	got, n, err := s.JSON([]byte(doc), strictjson.Default)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, doc, string(got))
}
