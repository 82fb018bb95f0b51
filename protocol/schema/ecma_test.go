package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Patterns are those of ECMA-262, also where Go's syntax differs or lacks a construct.
func TestPattern_IsOfECMA262(t *testing.T) {
	t.Parallel()
	zodEmail := `^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`
	for name, tc := range map[string]struct {
		pattern      string
		takes, fails []string
	}{
		"lookahead":            {zodEmail, []string{"ann@example.com", "a.b@x.io"}, []string{".ann@example.com", "a..b@example.com", "ann"}},
		"lookbehind":           {`(?<=\$)\d+`, []string{"$5"}, []string{"5"}},
		"back reference":       {`^(.)\1$`, []string{"aa", "éé"}, []string{"ab"}},
		"named back reference": {`^(?<q>['"]).*\k<q>$`, []string{`"a"`, `'a'`}, []string{`"a'`}},
		"many repetitions":     {`^.{1,2000}$`, []string{strings.Repeat("é", 2000), "a"}, []string{"", strings.Repeat("a", 2001), "a\nb"}},
		"more repetitions":     {`^[a-z]{5000}$`, []string{strings.Repeat("a", 5000)}, []string{strings.Repeat("a", 4999)}},
		"digits are ASCII":     {`^\d$`, []string{"5"}, []string{"٥", "५"}},
		"words are ASCII":      {`^\w$`, []string{"a", "_"}, []string{"é"}},
		"space":                {`^\s$`, []string{" ", "\u00a0", "\u2003", "\v", "\ufeff"}, []string{"a", "\u200b"}},
		"no space":             {`^\S$`, []string{"a", "é", "😀"}, []string{"\u00a0", " "}},
		"space in a class":     {`^[\s\d]$`, []string{"\u00a0", "5"}, []string{"a"}},
		"no space in a class":  {`^[\S]$`, []string{"a", "\u200b"}, []string{"\u2003"}},
		"anything":             {`^[\s\S]*$`, []string{"", "a\nb\u00a0"}, nil},
		"dot":                  {`^.$`, []string{"a", "é", "😀"}, []string{"\n", "\r", "\u2028"}},
		"dollar is the end":    {`^a$`, []string{"a"}, []string{"a\n", "a\nb"}},
		"escaped unit":         {`^\u00e9$`, []string{"é"}, []string{"e"}},
		"escaped pair":         {`^\ud83d\ude00$`, []string{"😀"}, []string{"😁"}},
		"escaped code point":   {`^\u{1f600}$`, []string{"😀"}, []string{"😁"}},
		"control":              {`^\cA$`, []string{"\x01"}, []string{"A"}},
		"slash":                {`^https?:\/\/[^\/]+\/$`, []string{"https://a.example/"}, []string{"https://a.example"}},
		"Unicode category":     {`^\p{Lu}\p{General_Category=Ll}$`, []string{"Éa"}, []string{"aÉ"}},
		"Unicode script":       {`^\p{Script=Greek}+$`, []string{"αβγ"}, []string{"abc"}},
		"Unicode property":     {`^\p{Emoji_Presentation}$`, []string{"😀"}, []string{"a"}},
		"named group":          {`^(?<year>\d{4})-(?<month>\d\d)$`, []string{"2026-11"}, []string{"26-11"}},
		"Go's own syntax":      {`(?i)^abc$`, []string{"ABC"}, []string{"abcd"}},
		"backspace":            {`^[\b]$`, []string{"\b"}, []string{"b"}},
		"lookahead and units":  {`^(?=.{2,3}$)\uD83D\uDE00`, []string{"😀a"}, []string{"😀", "😀abc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := func(s string) []byte { return strictjson.RenderPlain(s) }
			s := compile(t, `{"pattern":`+string(text(tc.pattern))+`}`)
			names := compile(t, `{"patternProperties":{`+string(text(tc.pattern))+`:true},"additionalProperties":false}`)
			for _, v := range tc.takes {
				require.Empty(t, s.Validate(text(v)), "%q", v)
				require.Empty(t, names.Validate([]byte(`{`+string(text(v))+`:1}`)), "%q", v)
			}
			for _, v := range tc.fails {
				vs := s.Validate(text(v))
				require.Len(t, vs, 1, "%q", v)
				require.Equal(t, "pattern", vs[0].Keyword)
				require.NotEmpty(t, names.Validate([]byte(`{`+string(text(v))+`:1}`)), "%q", v)
			}
		})
	}
}

// A pattern that backtracks without end stops, and the document is rejected for its cost.
func TestPattern_StopsWhenItBacktracksTooLong(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 5000) + "!"
	for name, tc := range map[string]struct{ schema, doc string }{
		"nested repetitions":         {`{"pattern":"^(?!x)(a+)+$"}`, `"` + text + `"`},
		"alternatives that are same": {`{"pattern":"^(?=a)(a|aa)+$"}`, `"` + text + `"`},
		"a back reference":           {`{"pattern":"^(a*)*\\1$"}`, `"` + text + `"`},
		"many texts":                 {`{"items":{"pattern":"^(?!x)(a+)+$"}}`, `[` + same(200, `"`+strings.Repeat("a", 40)+`!"`) + `]`},
		"names":                      {`{"patternProperties":{"^(?!x)(a+)+$":true}}`, `{"` + text + `":1}`},
		"repetitions in repetitions": {`{"pattern":"^(?=a)((a{1,3000}){1,3000}){1,3000}$"}`, `"` + text + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compile(t, tc.schema)
			began := time.Now()
			vs := s.Validate([]byte(tc.doc))
			require.Less(t, time.Since(began), 10*time.Second)
			require.Len(t, vs, 1)
			require.Contains(t, []string{schema.KeywordBudget, "pattern"}, vs[0].Keyword)
		})
	}
}

// Ordinary texts stay far below the limits.
func TestPattern_TakesManyOrdinaryTexts(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"pattern":"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}}`)
	require.Empty(t, s.Validate([]byte(`[`+same(1000, `"someone.with.a.name@mail.example.com"`)+`]`)))
}
