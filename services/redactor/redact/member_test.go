package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
)

// A member's name has the same effect as a name before a value in a text.
func TestJSON_RedactsValuesByTheirMemberName(t *testing.T) {
	t.Parallel()
	s := redact.Compile([]redact.Secret{secret("k", "known-value-1")}).With(redact.DefaultShapes())
	const gone = `"[REDACTED:shape.assignment]"`
	for name, tc := range map[string]struct {
		in, want string
		count    int
	}{
		"a password":         {`{"password":"swordfish"}`, `{"password":` + gone + `}`, 1},
		"with space between": {"{ \"password\" :\n \"hunter22\" }", "{ \"password\" :\n " + gone + " }", 1},
		"camel case": {
			`{"clientSecret":"aB3dE5gH7jK9mN1p","dbPass":"hunter22"}`,
			`{"clientSecret":` + gone + `,"dbPass":` + gone + `}`,
			2,
		},
		"with a prefix": {
			`{"MYSQL_PWD":"hunter22","x-api-key":"aB3dE5gH7jK9mN1p"}`,
			`{"MYSQL_PWD":` + gone + `,"x-api-key":` + gone + `}`,
			2,
		},
		"written with escapes": {`{"password":"hunt\u0065r\"22"}`, `{"password":` + gone + `}`, 1},
		"a name with escapes":  {`{"pass\u0077ord":"hunter22"}`, `{"pass\u0077ord":` + gone + `}`, 1},
		"deep within":          {`{"a":[{"b":{"passwd":"hunter22"}}]}`, `{"a":[{"b":{"passwd":` + gone + `}}]}`, 1},
		"a known value within": {`{"password":"known-value-1"}`, `{"password":"[REDACTED:k]"}`, 1},
		"a known value and more": {
			`{"password":"known-value-1hunter22"}`, `{"password":"[REDACTED:k][REDACTED:shape.assignment]"}`,
			2,
		},
		"a passphrase of words": {`{"passphrase":"correct-horse-battery"}`, `{"passphrase":` + gone + `}`, 1},
		"a short bearer": {
			`{"headers":{"Authorization":"Bearer aB3dE5"}}`,
			`{"headers":{"Authorization":"Bearer [REDACTED:shape.assignment]"}}`, 1,
		},
		"a header without scheme": {
			`{"Proxy-Authorization":"aB3dE5gH7jK9mN1p"}`,
			`{"Proxy-Authorization":` + gone + `}`,
			1,
		},
		"a header to be filled":  {`{"Authorization":"Bearer ${TOKEN}","authorization":"Bearer required"}`, ``, 0},
		"a marker":               {`{"password":"[REDACTED:sk-of-the-shop]"}`, ``, 0},
		"a rule, not a password": {`{"password":"must have at least 8 characters"}`, ``, 0},
		"a schema":               {`{"password":{"type":"string","minLength":8}}`, ``, 0},
		"a name next to its value": {
			`[{"name":"DB_PASSWORD","value":"hunter22"},{"key":"n","value":"hunter22"}]`,
			`[{"name":"DB_PASSWORD","value":` + gone + `},{"key":"n","value":"hunter22"}]`,
			1,
		},
		"a header next to its name": {
			`{"key":"Authorization","n":1,"value":"Bearer aB3dE5"}`,
			`{"key":"Authorization","n":1,"value":"Bearer [REDACTED:shape.assignment]"}`, 1,
		},
		"a name of something else": {`{"name":"password","n":{"value":"hunter22"},"values":["hunter22"]}`, ``, 0},
		"a number":                 {`{"password":1234567890123,"token":12345678901234567890}`, ``, 0},
		"a list":                   {`{"password":["username","hostname"]}`, ``, 0},
		"the id of a correlation":  {`{"token":"0b9f3c5e-7a1d-4e2b-9c8f-1a2b3c4d5e6f"}`, ``, 0},
		"a place in a list":        {`{"nextPageToken":"run_06gzs9m3s1xq16m6ak670468r0"}`, ``, 0},
		"a digest": {
			`{"secret":"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`, ``, 0,
		},
		"a reference to a setting": {`{"apiKey":"${OPENAI_API_KEY}","secret":"process.env.CLIENT_SECRET"}`, ``, 0},
		"compass and the like":     {`{"compass":"north-by-27-degrees","bypass":"a1b2c3d4e5"}`, ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				tc.want = tc.in
			}
			got, n, err := s.JSON([]byte(tc.in), strictjson.Limits{})
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
			require.Equal(t, tc.count, n)
			again, n, err := s.JSON(got, strictjson.Limits{})
			require.NoError(t, err)
			require.Equal(t, string(got), string(again))
			require.Zero(t, n)
		})
	}
}
