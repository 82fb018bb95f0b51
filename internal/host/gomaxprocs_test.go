package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThreads_KeepsTheEnvironmentsValue(t *testing.T) {
	t.Parallel()
	n, set := threads("", 2)
	require.True(t, set)
	require.Equal(t, 4, n)
	n, set = threads("8", 8)
	require.False(t, set)
	require.Equal(t, 8, n)
}
