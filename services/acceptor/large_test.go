package acceptor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestTurnstile_LetsAFewLargeEnvelopesInAndAllSmallOnes(t *testing.T) {
	t.Parallel()
	s := make(turnstile, 2)
	leave, err := s.enter(t.Context(), accept.MaxPayloadBytes+1)
	require.NoError(t, err)
	_, err = s.enter(t.Context(), accept.MaxPayloadBytes+1)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.enter(ctx, accept.MaxPayloadBytes+1)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "there is no room")
	_, err = s.enter(ctx, accept.MaxPayloadBytes)
	require.NoError(t, err, "a small one needs none")

	leave()
	_, err = s.enter(t.Context(), accept.MaxPayloadBytes+1)
	require.NoError(t, err)
}
