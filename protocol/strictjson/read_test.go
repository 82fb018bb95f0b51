package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

type inner struct {
	Name string          `json:"name"`
	Raw  json.RawMessage `json:"raw"`
}

type outer struct {
	inner
	Model  string           `json:"model"`
	Dotted string           `json:"ai.model"`
	One    *inner           `json:"one"`
	Many   []inner          `json:"many"`
	ByName map[string]inner `json:"byName"`
	Any    any              `json:"any"`
	Count  float64          `json:"count"`
}

func TestRead_MatchesExactNamesAndSkipsTheRest(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]outer{
		`{}`:                                    {},
		`{"model":"a"}`:                         {Model: "a"},
		`{"Model":"b"}`:                         {},
		`{"model":"a","Model":"b","MODEL":"c"}`: {Model: "a"},
		`{"MODEL":"c","model":"a"}`:             {Model: "a"},
		`{"\u006dodel":"a"}`:                    {Model: "a"},
		`{"ai.model":"x","AI.model":"y"}`:       {Dotted: "x"},
		` { "name" : "n" , "Name":"m", "extra" : {"a":[1,2]} } `:              {inner: inner{Name: "n"}},
		`{"one":{"name":"n","NAME":"m"}}`:                                     {One: &inner{Name: "n"}},
		`{"one":null}`:                                                        {},
		`{"many":[{"Name":"x"},{"name":"y","z":1},{}]}`:                       {Many: []inner{{}, {Name: "y"}, {}}},
		`{"byName":{"A":{"name":"1"},"a":{"Name":"2"}}}`:                      {ByName: map[string]inner{"A": {Name: "1"}, "a": {}}},
		`{"one":{"raw":{"Name":1,"name":2}}}`:                                 {One: &inner{Raw: json.RawMessage(`{"Name":1,"name":2}`)}},
		`{"any":{"Model":"b"},"count":3.0,"many":[],"byName":{},"unknown":0}`: {Any: map[string]any{"Model": "b"}, Count: 3, Many: []inner{}, ByName: map[string]inner{}},
	} {
		var got outer
		require.NoError(t, strictjson.Read([]byte(doc), &got), doc)
		require.Equal(t, want, got, doc)
	}
}

func TestRead_RejectsWhatCheckRejects(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{``, `{`, `{"model":"a","model":"b"}`, `{"x":{"a":1,"a":2}}`, "{\"model\":\"\xff\"}", `{} {}`} {
		var got outer
		require.Error(t, strictjson.Read([]byte(doc), &got), doc)
		require.Equal(t, outer{}, got, doc)
	}
	var got outer
	require.Error(t, strictjson.Read([]byte(`{}`), got))
	require.Error(t, strictjson.Read([]byte(strings.Repeat("[", 2000)+strings.Repeat("]", 2000)), &got))
	var wrong *json.UnmarshalTypeError
	require.ErrorAs(t, strictjson.Read([]byte(`{"model":7}`), &got), &wrong)
	require.Equal(t, "model", wrong.Field)
	require.Error(t, strictjson.Read([]byte(`[]`), &got))
}

// For every accepted document, Read returns what Decode returns for the document without unknown
// members.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a","Model":"b"}`, `{"many":[{"name":"x","NAME":"y"}],"one":{"raw":[1]}}`, `{"byName":{"k":{"name":"v"}}}`, `{"any":[{"Model":1}]}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var read, decoded outer
		rerr := strictjson.Read(doc, &read)
		if err := strictjson.Check(doc, strictjson.Limits{}); err != nil {
			require.Error(t, rerr)
			return
		}
		if strictjson.Decode(doc, strictjson.Limits{}, &decoded) != nil {
			return // it has members that only Read skips, or does not fit
		}
		require.NoError(t, rerr)
		a, err := json.Marshal(read)
		require.NoError(t, err)
		b, err := json.Marshal(decoded)
		require.NoError(t, err)
		require.JSONEq(t, string(b), string(a))
	})
}
