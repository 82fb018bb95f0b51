package strictjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// asError asserts that err is an *Error and returns it.
func asError(t require.TestingT, err error) *strictjson.Error {
	require.Error(t, err)
	var e *strictjson.Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestCheck_AcceptsValidDocuments(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1.5e+10`, `1E-2`, `""`,
		" \t\r\n{ \"a\" : [ 1 , 2 ] }\n",
		`{"a":{"a":{"a":1}},"b":{"a":1}}`,
		`"\" \\ \/ \b \f \n \r \t \u00e9 \uD83D\uDE00"`,
		`"grüße 漢字 😀"`,
		`123456789012345678901234567890`,
		`{"":1," ":2}`,
		`{"a":1,"A":2}`,
	} {
		require.NoError(t, strictjson.Check([]byte(doc), strictjson.Default), doc)
	}
}

func TestCheck_ReportsPathAndRule(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		doc, rule, path string
		offset          int
	}{
		"empty":                      {``, strictjson.RuleSyntax, "", 0},
		"only space":                 {"  ", strictjson.RuleSyntax, "", 2},
		"byte order mark":            {"\xef\xbb\xbf{}", strictjson.RuleSyntax, "", 0},
		"trailing value":             {`{} {}`, strictjson.RuleSyntax, "", 3},
		"trailing garbage":           {`1x`, strictjson.RuleSyntax, "", 1},
		"NUL":                        {"\x00", strictjson.RuleSyntax, "", 0},
		"trailing comma in array":    {`[1,]`, strictjson.RuleSyntax, "/1", 3},
		"trailing comma in object":   {`{"a":1,}`, strictjson.RuleSyntax, "", 7},
		"missing comma":              {`{"a":[1 2]}`, strictjson.RuleSyntax, "/a", 8},
		"missing colon":              {`{"a" 1}`, strictjson.RuleSyntax, "/a", 5},
		"unquoted name":              {`{a:1}`, strictjson.RuleSyntax, "", 1},
		"single quotes":              {`{'a':1}`, strictjson.RuleSyntax, "", 1},
		"cut off":                    {`{"a":{"b":[1`, strictjson.RuleSyntax, "/a/b", 12},
		"cut off string":             {`["abc`, strictjson.RuleSyntax, "/0", 5},
		"cut off escape":             {`["\`, strictjson.RuleSyntax, "/0", 3},
		"leading zero":               {`[01]`, strictjson.RuleSyntax, "", 2},
		"plus sign":                  {`+1`, strictjson.RuleSyntax, "", 0},
		"bare minus":                 {`-`, strictjson.RuleSyntax, "", 1},
		"no fraction":                {`1.`, strictjson.RuleSyntax, "", 2},
		"no exponent":                {`1e+`, strictjson.RuleSyntax, "", 3},
		"NaN":                        {`[NaN]`, strictjson.RuleSyntax, "/0", 1},
		"word misspelt":              {`[nul]`, strictjson.RuleSyntax, "/0", 4},
		"comment":                    {`[/* x */1]`, strictjson.RuleSyntax, "/0", 1},
		"control character":          {"\"a\nb\"", strictjson.RuleSyntax, "", 2},
		"unknown escape":             {`"\x41"`, strictjson.RuleSyntax, "", 1},
		"short unicode escape":       {`"\u12"`, strictjson.RuleSyntax, "", 1},
		"invalid UTF-8":              {"{\"a\":\"\xff\"}", strictjson.RuleEncoding, "/a", 6},
		"overlong UTF-8":             {"\"\xc0\x80\"", strictjson.RuleEncoding, "", 1},
		"UTF-8 of a surrogate":       {"\"\xed\xa0\x80\"", strictjson.RuleEncoding, "", 1},
		"lone high surrogate":        {`"\ud800"`, strictjson.RuleEncoding, "", 1},
		"lone low surrogate":         {`"\udc00"`, strictjson.RuleEncoding, "", 1},
		"pair in the wrong order":    {`"\udc00\ud800"`, strictjson.RuleEncoding, "", 1},
		"high then plain escape":     {`"\ud800\u0041"`, strictjson.RuleEncoding, "", 1},
		"surrogate in a member name": {`{"\ud800":1}`, strictjson.RuleEncoding, "", 2},
		"duplicate":                  {`{"x":{"a":1,"b":2,"a":3}}`, strictjson.RuleDuplicate, "/x/a", 18},
		"duplicate after unescaping": {`{"ab":1,"\u0061b":2}`, strictjson.RuleDuplicate, "/ab", 8},
		"duplicate pair":             {`{"😀":1,"\ud83d\ude00":2}`, strictjson.RuleDuplicate, "/😀", 10},
		"path is escaped":            {`{"a/b~c":tru}`, strictjson.RuleSyntax, "/a~1b~0c", 12},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := asError(t, strictjson.Check([]byte(tc.doc), strictjson.Default))
			require.Equal(t, tc.rule, e.Rule, e.Error())
			require.Equal(t, tc.path, e.Path, e.Error())
			require.Equal(t, tc.offset, e.Offset, e.Error())
			require.NotEmpty(t, e.Reason)
		})
	}
}

func TestCheck_FindsDuplicatesAmongManyMembers(t *testing.T) {
	t.Parallel()
	object := func(n int, last string) []byte {
		var b strings.Builder
		b.WriteString(`{"in":{"k0":1},`)
		for i := range n {
			fmt.Fprintf(&b, `"k%d":{"k0":1},`, i)
		}
		fmt.Fprintf(&b, `%q:1}`, last)
		return []byte(b.String())
	}
	for _, n := range []int{1, 15, 14, 16, 17, 18, 500} {
		require.NoError(t, strictjson.Check(object(n, "new"), strictjson.Default), n)
		for _, old := range []string{"k0", fmt.Sprintf("k%d", n-1)} {
			e := asError(t, strictjson.Check(object(n, old), strictjson.Default))
			require.Equal(t, strictjson.RuleDuplicate, e.Rule)
			require.Equal(t, "/"+old, e.Path)
		}
	}
}

func TestCheck_BoundsDepth(t *testing.T) {
	t.Parallel()
	nest := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	require.NoError(t, strictjson.Check(nest(64), strictjson.Default))

	e := asError(t, strictjson.Check(nest(65), strictjson.Default))
	require.Equal(t, strictjson.RuleDepth, e.Rule)
	require.Equal(t, 64, e.Offset)
	require.Contains(t, e.Reason, "64")

	mixed := []byte(`{"a":[{"b":1}]}`)
	require.NoError(t, strictjson.Check(mixed, strictjson.Limits{MaxDepth: 3}))
	e = asError(t, strictjson.Check(mixed, strictjson.Limits{MaxDepth: 2}))
	require.Equal(t, "/a/0", e.Path)

	hostile := []byte(strings.Repeat(`{"a":`, 100_000))
	require.Equal(t, strictjson.RuleDepth, asError(t, strictjson.Check(hostile, strictjson.Default)).Rule)
}

func TestCheck_BoundsSizeBeforeReading(t *testing.T) {
	t.Parallel()
	e := asError(t, strictjson.Check([]byte(`not json`), strictjson.Limits{MaxBytes: 7}))
	require.Equal(t, strictjson.RuleSize, e.Rule)
	require.Contains(t, e.Reason, "8 bytes")
	require.NoError(t, strictjson.Check([]byte(`"12345"`), strictjson.Limits{MaxBytes: 7}))
}

func TestCheck_AllocatesNothingForOrdinaryBodies(t *testing.T) {
	body := sampleBody()
	require.Zero(t, testing.AllocsPerRun(50, func() {
		if err := strictjson.Check(body, strictjson.Default); err != nil {
			t.Fatal(err)
		}
	}))
}

func TestError_ShortensAndQuotesHostilePaths(t *testing.T) {
	t.Parallel()
	doc := `{"` + strings.Repeat("x", 5000) + `\n":oops}`
	e := asError(t, strictjson.Check([]byte(doc), strictjson.Default))
	require.Greater(t, len(e.Path), 5000)
	require.Less(t, len(e.Error()), 500)

	e = asError(t, strictjson.Check([]byte(`{"a\nb":oops}`), strictjson.Default))
	require.Equal(t, "/a\nb", e.Path)
	require.NotContains(t, e.Error(), "\n")
}

// sampleBody is a run request of about 2 KB.
func sampleBody() []byte {
	var b strings.Builder
	b.WriteString(`{"workflowId":"conformance-identity","inputs":{"items":[`)
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"title":"Item number %d, grüße","tags":["a","b"],"price":%d.25,"ok":true}`, i, i, i)
	}
	b.WriteString(`]},"configurable":{"recursionLimit":25},"metadata":{"note":"a \"quoted\" word"}}`)
	return []byte(b.String())
}

func BenchmarkCheck(b *testing.B) {
	body := sampleBody()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := strictjson.Check(body, strictjson.Default); err != nil {
			b.Fatal(err)
		}
	}
}
