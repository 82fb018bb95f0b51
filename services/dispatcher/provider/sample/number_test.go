package sample

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// flatOf reads a schema without references.
func flatOf(t *testing.T, schema string) (*generator, *flat) {
	t.Helper()
	root, err := decode(json.RawMessage(schema))
	require.NoError(t, err)
	g := newGenerator(root, "pay 42.50 for order 7", 3)
	f, err := g.flatten(root)
	require.NoError(t, err)
	return g, f
}

func TestNumber_StaysWithinTheBounds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		schema, name, want string
		whole              bool
	}{
		{`{"minimum":3,"maximum":3}`, "n", "3", false},
		{`{"exclusiveMinimum":3,"maximum":4}`, "n", "4", true},
		{`{"minimum":3,"exclusiveMinimum":3,"maximum":4}`, "n", "4", true},
		{`{"minimum":3,"exclusiveMinimum":2,"maximum":3}`, "n", "3", true},
		{`{"minimum":-1,"exclusiveMaximum":0}`, "n", "-1", true},
		{`{"minimum":0.1,"maximum":0.1}`, "n", "0.1", false},
		{`{"multipleOf":0.3,"minimum":0.5,"maximum":0.8}`, "n", "0.6", false},
		{`{"multipleOf":2.5,"minimum":4,"maximum":8}`, "n", "5", true},
		{`{}`, "amount", "42.5", false},
		{`{}`, "totalAmount", "42", true},
		{`{"maximum":10}`, "amount", "7", false},
		{`{"minimum":1e3,"maximum":1.0E3}`, "n", "1000", true},
	} {
		g, f := flatOf(t, tc.schema)
		got, err := g.number(f, place{name: tc.name}, tc.whole)
		require.NoError(t, err, tc.schema)
		require.Equal(t, json.Number(tc.want), got, tc.schema)
	}
}

func TestNumber_FailsWhenNoneFits(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"minimum":2,"maximum":1}`, `{"exclusiveMinimum":1,"maximum":1}`,
		`{"multipleOf":10,"minimum":1,"maximum":9}`, `{"minimum":0.2,"maximum":0.8}`,
	} {
		g, f := flatOf(t, schema)
		_, err := g.number(f, place{name: "n"}, true)
		require.ErrorContains(t, err, "no number", schema)
	}
}

func TestRational_ReadsExactlyAndBoundsTheExponent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"0.1": "1/10", "-2.50": "-5/2", "1e2": "100/1", "1E-2": "1/100"} {
		r, ok := rational(json.Number(text))
		require.True(t, ok, text)
		require.Equal(t, want, r.String())
	}
	for _, v := range []any{
		json.Number("1e401"), json.Number("1e-401"), json.Number("1e99999999999999999999"), "7", nil,
		true,
	} {
		_, ok := rational(v)
		require.False(t, ok, "%v", v)
	}
}

func TestCount_ReadsWholeNumbersAlone(t *testing.T) {
	t.Parallel()
	_, f := flatOf(t, `{"a":3,"b":2.0,"c":1.5,"d":"4","e":1e300}`)
	require.Equal(t, []int{3, 2, -1, -1, -1, -1}, []int{
		f.count("a", -1), f.count("b", -1), f.count("c", -1), f.count("d", -1), f.count("e", -1),
		f.count("none", -1),
	})
}
