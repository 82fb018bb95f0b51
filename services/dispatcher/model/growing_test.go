package model

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// Every beginning of a document is closed to a document whose values are those of the whole one.
func TestCloseDocument_OfEveryBeginning(t *testing.T) {
	t.Parallel()
	for _, whole := range []string{
		`{"title":"Call the printer","urgent":true,"n":-1.5e3,"none":null,"parts":[{"a":[1,[2,"x"]]},{}],"last":"é\u00e9\ud83d\ude00\"\\ 😀"}`,
		`[{"a":1},{"a":"b"},[],{},"",0,false]`,
		"{\n  \"a\" : \"b\" ,\n  \"c\" : [ 1 , 2 ]\n}",
	} {
		var want any
		require.NoError(t, json.Unmarshal([]byte(whole), &want))
		for cut := 1; cut <= len(whole); cut++ {
			c, ok := closeDocument(whole[:cut])
			require.True(t, ok, whole[:cut])
			for _, doc := range []json.RawMessage{c.complete, c.open, c.longer} {
				if doc != nil {
					require.True(t, json.Valid(doc), "%q of %q", doc, whole[:cut])
				}
			}
			var got any
			require.NoError(t, json.Unmarshal(c.complete, &got))
			requireBeginning(t, want, got, false)
			if c.open != nil {
				require.NoError(t, json.Unmarshal(c.open, &got))
				requireBeginning(t, want, got, true)
			}
		}
	}
}

// requireBeginning requires that a value is a beginning of another one. cut allows a string that is cut.
func requireBeginning(t *testing.T, whole, part any, cut bool) {
	t.Helper()
	switch part := part.(type) {
	case map[string]any:
		for name, v := range part {
			requireBeginning(t, whole.(map[string]any)[name], v, cut)
		}
	case []any:
		for i, v := range part {
			requireBeginning(t, whole.([]any)[i], v, cut)
		}
	case string:
		require.True(t, utf8.ValidString(part))
		require.NotContains(t, part, "\uFFFD")
		if cut {
			require.True(t, strings.HasPrefix(whole.(string), part), "%q of %q", part, whole)
			return
		}
		require.Equal(t, whole, part)
	default:
		require.Equal(t, whole, part)
	}
}

func TestCloseDocument_RejectsWhatIsNotTheBeginningOfJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"a" 1`, `{a:1`, `{"a":1,,`, `]`, `{"a":}`, `{'a':1`, `{"a":tru}`, `{"a":1}}`[:0], strings.Repeat("[", 200)} {
		_, ok := closeDocument(text)
		require.False(t, ok, text)
	}
}

// One budget limits the checks of all documents of an answer, and a canceled run ends them.
//
//nolint:paralleltest // it measures time
func TestReader_OfHostileAnswersIsBounded(t *testing.T) {
	s, err := schema.Compile("slow", []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=(a+)+b$)(a+)+b$"}},"required":["a"]}`))
	require.NoError(t, err)
	one := `{"a":"` + strings.Repeat("a", 40) + `!"}`
	nulls := `{"a":"` + strings.Repeat("a", 40) + `!",` + strings.Repeat(`"n":null,`, 1)[:8] + `}`
	for name, text := range map[string]string{
		"lines": strings.Repeat(one+"\n", 1000), "prose": strings.Repeat("so "+one+" it is ", 1000), "nulls": strings.Repeat(nulls+"\n", 1000),
		"one list": "[" + strings.Repeat(one+",", 1000) + one + "]",
	} {
		began := time.Now()
		x := extract(text)
		_, violations, err := (&reader{budget: schema.NewBudget(len(text))}).chooseValue(t.Context(), x.documents, s)
		require.NoError(t, err)
		require.NotEmpty(t, violations, name)
		took := time.Since(began)
		t.Log(name, took)
		require.Less(t, took, 10*time.Second, "%s: without a budget it does not end in a lifetime", name)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = (&reader{budget: schema.NewBudget(len(text))}).chooseValue(ctx, x.documents, s)
		require.ErrorIs(t, err, context.Canceled, name)
	}
}
