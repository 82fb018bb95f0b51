package probe

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPublic_HidesPathsAndAccounts(t *testing.T) {
	t.Parallel()
	require.NoError(t, Public(nil))
	for _, err := range []error{
		errors.New("account $G: write /data/nats/x.blk: no space left on device"),
		fmt.Errorf("stream 'A > S': %w", errors.New("/data")),
	} {
		require.NotContains(t, Public(err).Error(), "/data")
		require.NotContains(t, Public(err).Error(), "$G")
		require.EqualError(t, Public(WithPublic("the log is full", err)), "the log is full")
	}
	require.EqualError(t, Public(ErrStarting), ErrStarting.Error())
	require.EqualError(t, Public(Plain("no redactor")), "no redactor")
}
