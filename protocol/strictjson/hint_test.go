package strictjson_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestHint_NamesTheRemedy(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"{\n// mine\n\"a\": 1}":     "no comments",
		`{"a": [1, 2,]}`:            "remove the comma",
		`{"a": 1,}`:                 "remove the comma",
		`{'a': 1}`:                  "double quotes",
		`{“a”: 1}`:                  "double quotes",
		"a: 1\n":                    "the document looks like YAML",
		`{"a" "b"}`:                 "colon is missing",
		`{"a": {"b": []}, "c" "d"}`: "colon is missing",
		`{"a": {"b": 1} "c": 2}`:    "comma is missing",
		`["a" "b"]`:                 "comma is missing",
		"{\"a\": 1\n \"b\": 2}":     "comma is missing",
	} {
		e, ok := errors.AsType[*strictjson.Error](strictjson.Check([]byte(doc), strictjson.Limits{}))
		require.True(t, ok, doc)
		require.Contains(t, strictjson.Hint([]byte(doc), e.Offset), want, doc)
	}
	require.Empty(t, strictjson.Hint([]byte(`{"a":`), 5))
	require.Empty(t, strictjson.Hint(nil, 0))
}
