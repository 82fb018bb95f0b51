package strictjson_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

func TestHasText_MeasuresDecodedBytes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		doc     string
		longest int // the longest string, in bytes; -1 for no string at all
	}{
		"no strings":        {`[1,true,null,-2.5e3]`, -1},
		"empty string":      {`[""]`, 0},
		"value":             {`[1,"abcd"]`, 4},
		"member name":       {`{"abcdef":1}`, 6},
		"the longest wins":  {`{"a":["bc","defg","h"]}`, 4},
		"short escapes":     {`"\n\"\\"`, 3},
		"quote in a string": {`["a\"b","c"]`, 3},
		"ASCII by escape":   {`"\u0041"`, 1},
		"two bytes":         {`"\u00e9"`, 2},
		"three bytes":       {`"\u6f22"`, 3},
		"surrogate pair":    {`"\ud83d\ude00"`, 4},
		"raw UTF-8":         {`"😀é"`, 6},
		"backslash at end":  {`["x\\","yz"]`, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.True(t, tc.longest < 0 || strictjson.HasText([]byte(tc.doc), tc.longest))
			require.False(t, strictjson.HasText([]byte(tc.doc), tc.longest+1))
		})
	}
}

func TestHasText_SurvivesDocumentsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{``, `"`, `"\`, `"\u`, `"\u12`, `"\ud800`, `\`, `""""`} {
		require.NotPanics(t, func() { strictjson.HasText([]byte(doc), 1) }, doc)
	}
}

func BenchmarkHasText(b *testing.B) {
	body := sampleBody()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if strictjson.HasText(body, 64) {
			b.Fatal("the sample has no string of 64 bytes")
		}
	}
}
