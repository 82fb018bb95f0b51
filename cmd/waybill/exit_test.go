package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestExitStatus_TellsEndsApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"done":                     {nil, 0},
		"accepted":                 {judged(accept.Accepted), 0},
		"a bad flag":               {fmt.Errorf("%w: --x", errUsage), 2},
		"anything else":            {errors.New("boom"), 1},
		"invalid":                  {judged(accept.Invalid), 3},
		"gated":                    {judged(accept.Gated), 4},
		"breached":                 {judged(accept.Breached), 5},
		"an outcome of the future": {judged("postponed"), 1},
		"away":                     {called(fmt.Errorf("open run: %w", fault.New(fault.ServiceUnavailable, "away"))), 6},
		"silent":                   {called(context.DeadlineExceeded), 6},
		"a run that is not open":   {called(fault.New(fault.RunNotFound, "none")), 1},
	} {
		require.Equal(t, tc.want, exitStatus(tc.err), name)
	}
	require.ErrorIs(t, judged(accept.Gated), errRefused)
}
