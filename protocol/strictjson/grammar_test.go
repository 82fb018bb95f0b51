package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// The grammar of RFC 8259, section by section. Documents listed as invalid are invalid for every
// JSON reader, documents listed as valid are valid for every one.
func TestCheck_FollowsTheGrammar(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ good, bad []string }{
		"structure": {
			good: []string{"[]", "{}", "[[],{}]", `{"a":[]}`, " [ ] ", "{ }", `[{"a":1},{"a":2}]`, "[\n1\r,\t2 ]"},
			bad: []string{
				"[", "]", "{", "}", "[}", "{]", "[[]", "[]]", "[,]", "[,1]", "[1,,2]", "[1;2]", "{,}", `{"a"}`, `{"a":}`, `{:1}`,
				`{"a":1,,"b":2}`, `{"a":1 "b":2}`, `{"a"::1}`, `{1:2}`, `{null:1}`, `{[]:1}`, "[1\f]", "[\u00a01]", "[\u20601]",
			},
		},
		"words": {
			good: []string{"true", "false", "null", "[true,false,null]"},
			bad:  []string{"True", "TRUE", "tru", "truee", "nul", "nil", "none", "undefined", "fals e", "[truefalse]", "NaN", "Infinity", "-Infinity"},
		},
		"numbers": {
			good: []string{"0", "-0", "0.0", "-0.0", "10", "1.25", "1e5", "1E5", "1e+5", "1e-5", "0e0", "0.5e-3", "1e400", "99999999999999999999"},
			bad: []string{
				"+1", "-", "--1", "- 1", "01", "-01", "00", "1.", ".5", "-.5", "1.e5", "1e", "1e+", "1e5.5", "1ee5", "0x10", "0b1", "1_000", "1,000",
				"1.2.3", "1a", "٣", "1e٣",
			},
		},
		"strings": {
			good: []string{`""`, `" "`, `"a"`, `"\""`, `"\\"`, `"\/"`, `"\b\f\n\r\t"`, `"\u0000"`, `"\uFFFF"`, `"\uabCD"`, "\"\x7f\"", `"/"`, "\"\u2028\"", `"\u2028"`},
			bad: []string{
				`"`, `"a`, `a"`, `'a'`, `"\"`, `"\a"`, `"\'"`, `"\0"`, `"\v"`, `"\U0041"`, `"\u"`, `"\u1"`, `"\u123"`, `"\u12g4"`, `"\u+123"`, `"\u 123"`,
				"\"\x00\"", "\"\x1f\"", "\"\t\"", "\"\n\"", "\"a\\\nb\"",
			},
		},
		"surrogates": {
			good: []string{`"\ud800\udc00"`, `"\udbff\udfff"`, `"\uD834\uDD1E"`, `"x\ud83d\ude00y"`, `"\ud7ff\ue000"`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, doc := range tc.good {
				require.NoError(t, strictjson.Check([]byte(doc), strictjson.Default), "%q", doc)
				require.True(t, json.Valid([]byte(doc)), "%q", doc)
			}
			for _, doc := range tc.bad {
				for _, around := range []string{doc, "[" + doc + "]", `{"a":` + doc + `}`} {
					e := asError(t, strictjson.Check([]byte(around), strictjson.Default))
					if around == doc {
						require.Equal(t, strictjson.RuleSyntax, e.Rule, "%q", doc)
					}
				}
			}
		})
	}
}

// encoding/json accepts each of these and silently changes it.
func TestCheck_RejectsWhatLenientReadersRepair(t *testing.T) {
	t.Parallel()
	for name, doc := range map[string]string{
		"last member wins":           `{"role":"user","role":"admin"}`,
		"escaped twin":               `{"role":"user","r\u006fle":"admin"}`,
		"replacement character":      "\"\xff\"",
		"truncated sequence":         "\"\xe2\x82\"",
		"beyond Unicode":             "\"\xf4\x90\x80\x80\"",
		"lone half becomes U+FFFD":   `"\ud83d"`,
		"two high halves":            `"\ud83d\ud83d"`,
		"half before a plain letter": `"\ud83dx"`,
		"half at the end of a name":  `{"\ude00":1}`,
	} {
		require.True(t, json.Valid([]byte(doc)), name)
		require.Error(t, strictjson.Check([]byte(doc), strictjson.Default), name)
	}
}

func TestCheck_ZeroLimitsMeanTheDefaults(t *testing.T) {
	t.Parallel()
	large := make([]byte, strictjson.Default.MaxBytes+1)
	require.Equal(t, strictjson.RuleSize, asError(t, strictjson.Check(large, strictjson.Limits{})).Rule)
	require.NoError(t, strictjson.Check([]byte(`[[1]]`), strictjson.Limits{MaxBytes: 10}))
	require.NoError(t, strictjson.Check([]byte(`[[1]]`), strictjson.Limits{MaxDepth: 2}))
}

func TestCheck_MessagesStateWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for doc, advice := range map[string]string{
		``:                  "ends too early; want a JSON value",
		"\xef\xbb\xbf{}":    "without it",
		`{} x`:              "exactly one",
		`{a:1}`:             "double quotes",
		`{"a" 1}`:           "colon",
		`[1 2]`:             "comma",
		"\"\t\"":            `\n or \u0000`,
		`"\q"`:              `\u with four hex digits`,
		"\"\xff\"":          "send the document as UTF-8",
		`"\ud800"`:          "escape both halves",
		`{"a":1,"a":1}`:     "keep one",
		`[.5]`:              "want a JSON value here",
		`[1.]`:              "digit after the decimal point",
		`[1e]`:              "digit in the exponent",
		`"no closing`:       "closing double quote",
		`{"a":{"b":tru e}}`: "the word true",
	} {
		require.Contains(t, asError(t, strictjson.Check([]byte(doc), strictjson.Default)).Reason, advice, "%q", doc)
	}
}
