package rotation_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/rotation"
)

func TestIncludes_EachCaseInOneOfNTurns(t *testing.T) {
	const every = 3
	included := map[int]int{}
	for turn := 100; turn < 100+every; turn++ {
		t.Setenv(rotation.Variable, strconv.Itoa(turn))
		n := 0
		for i := range 4 * every {
			if rotation.Includes(i, every) {
				included[i]++
				n++
			}
		}
		require.Equal(t, 4, n, "a third of the cases")
	}
	require.Len(t, included, 4*every)
	for i, n := range included {
		require.Equal(t, 1, n, "case %d", i)
	}
}

func TestTurn_IsANumberFromZero(t *testing.T) {
	t.Setenv(rotation.Variable, "")
	require.Zero(t, rotation.Turn())
	t.Setenv(rotation.Variable, "1289")
	require.Equal(t, 1289, rotation.Turn())
	for _, bad := range []string{"-1", "x", "1.5"} {
		t.Setenv(rotation.Variable, bad)
		require.PanicsWithValue(t, "TEST_TURN="+bad+": want a number from 0", func() { rotation.Turn() })
	}
}
