package envelopes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestEnvelopeAccept_HasTheSameDefault(t *testing.T) {
	t.Parallel()
	doc := filepath.Join(t.TempDir(), "answer.json")
	require.NoError(t, os.WriteFile(doc, []byte(sound), 0o600))
	_, err := command(t, "", "envelope", "accept", "--run", "r", "--node", "n", "--addr", "acceptor:9091", "--ca", "ca.pem", "--plaintext", doc)
	require.ErrorIs(t, err, exit.ErrUsage)
	require.ErrorContains(t, err, "one of the two")
}

func TestExitStatus_DependsOnTheError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"done":                   {nil, 0},
		"accepted":               {judged(accept.Accepted), 0},
		"a bad flag":             {exit.Usagef("--x"), 2},
		"another error":          {errors.New("boom"), 1},
		"invalid":                {judged(accept.Invalid), 6},
		"gated":                  {judged(accept.Gated), 6},
		"breached":               {judged(accept.Breached), 6},
		"an unknown outcome":     {judged("postponed"), 6},
		"away":                   {fmt.Errorf("open run: %w", fault.New(fault.ServiceUnavailable, "away")), 7},
		"silent":                 {context.DeadlineExceeded, 7},
		"a run that is not open": {fault.New(fault.RunNotFound, "none"), 5},
	} {
		require.Equal(t, tc.want, exit.Status(tc.err), name)
	}
	require.ErrorIs(t, judged(accept.Gated), errRefused)
}
