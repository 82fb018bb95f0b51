package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestPositions_OfMembersAndElements(t *testing.T) {
	t.Parallel()
	doc := []byte("{\n  \"é\": [1, {\"a/b\": true}],\n\t\"c\" : \"x\"\n}\n")
	at := strictjson.Positions(doc)
	for pointer, want := range map[string]strictjson.Position{
		"":             {Line: 1, Column: 1},
		"/é":           {Line: 2, Column: 3},
		"/é/0":         {Line: 2, Column: 9},
		"/é/1":         {Line: 2, Column: 12},
		"/é/1/a~1b":    {Line: 2, Column: 13},
		"/é/1/missing": {Line: 2, Column: 12},
		"/c":           {Line: 3, Column: 2},
		"/d/e":         {Line: 1, Column: 1},
	} {
		require.Equal(t, want, at(pointer), pointer)
	}
	require.Equal(t, strictjson.Position{Line: 2, Column: 7}, strictjson.Positions([]byte("{\n  \"a\":}"))("/a"))
	require.Equal(t, strictjson.Position{Line: 2, Column: 1}, strictjson.Positions([]byte("{\"a\":1,\n"))("/x"))
	require.Equal(t, strictjson.Position{Line: 1, Column: 1}, strictjson.Positions(nil)(""))
}

func TestProblems_HaveLinePathAndMessage(t *testing.T) {
	t.Parallel()
	p := strictjson.Problems{{Path: "/a/1", Message: "want a number"}, {Path: "/b", Message: "missing"}}
	require.EqualError(t, p, "at \"/a/1\": want a number\nat \"/b\": missing")
	require.EqualError(t, p.In([]byte("{\"a\":[1,\n\"x\"]}")), "line 2, at \"/a/1\": want a number\nline 1, at \"/b\": missing")
}
