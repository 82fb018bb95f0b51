package projection

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecimal_IsTheSameForEqualNumbersOnly(t *testing.T) {
	t.Parallel()
	numbers := []string{
		"0", "-0", "0.0", "0e7", "1", "1.0", "1e0", "10e-1", "0.1e1", "-1", "-1.00", "10", "1e1", "1E+1",
		"0.10", "1e-1", "123.4500", "12345e-2",
		"9007199254740993", "9007199254740993.0", "9007199254740992", "1e300", "10e299", "1e-300",
	}
	for _, a := range numbers {
		for _, b := range numbers {
			x, _ := new(big.Rat).SetString(a)
			y, _ := new(big.Rat).SetString(b)
			require.Equal(t, x.Cmp(y) == 0, decimal(a) == decimal(b), "%s %s", a, b)
		}
	}
	require.NotEqual(t, decimal("1e999999999999999999999"), decimal("1e999999999999999999998"))
}

func TestEqual_ComparesAsJSONSchemaDoes(t *testing.T) {
	t.Parallel()
	classes := [][]string{
		{`null`},
		{`true`},
		{`"true"`},
		{`1`, `1.0`, `10e-1`},
		{`"1"`},
		{`[1]`, `[1.0]`},
		{`["1"]`},
		{`[1,1]`},
		{`[[1],1]`},
		{`[[1,1]]`},
		{`{"a":1,"b":{"c":[],"d":0}}`, `{"b":{"d":0.0,"c":[]},"a":1.0}`},
		{`{"a":1,"b":{"c":[],"d":1}}`},
		{`{"a":1}`},
		{`{"a\":1":1}`},
		{`{}`},
		{`[]`},
		{`[[]]`},
		{`"[]"`},
		{`""`},
	}
	for i, some := range classes {
		for j, others := range classes {
			for _, a := range some {
				for _, b := range others {
					require.Equal(t, i == j, equal(read([]byte(a)), read([]byte(b))), "%s %s", a, b)
				}
			}
		}
	}
}
