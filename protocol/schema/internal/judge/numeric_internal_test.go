package judge

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// near agrees with the exact order or returns 0.
func FuzzNear(f *testing.F) {
	for _, n := range []string{"12.5", "-0.5", "1e400", "1e-400", "9007199254740993.0", "9007199254740992.5", "0.99999999999999999999", "1e2", "-1e2", "0.0"} {
		for _, b := range []int64{0, 1, -1, 100, 1 << 53, 1<<53 + 1, -1 << 53, 1 << 62} {
			f.Add(n, b)
		}
	}
	f.Fuzz(func(t *testing.T, n string, b int64) {
		exact, ok := new(big.Rat).SetString(n)
		if !json.Valid([]byte(n)) || !ok || len(n) > 40 {
			return
		}
		if order := near(json.Number(n), new(big.Rat).SetInt64(b)); order != 0 {
			require.Equal(t, exact.Cmp(new(big.Rat).SetInt64(b)), order, "%s and %d", n, b)
		}
	})
}
