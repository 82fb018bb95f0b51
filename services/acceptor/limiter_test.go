package acceptor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestLargeBodies_LimitsLargeEnvelopesOnly(t *testing.T) {
	t.Parallel()
	s := make(largeBodies, 2)
	leave, err := s.acquire(t.Context(), accept.MaxPayloadBytes+1)
	require.NoError(t, err)
	_, err = s.acquire(t.Context(), accept.MaxPayloadBytes+1)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.acquire(ctx, accept.MaxPayloadBytes+1)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "there is no room")
	_, err = s.acquire(ctx, accept.MaxPayloadBytes)
	require.NoError(t, err, "a small one needs none")

	leave()
	_, err = s.acquire(t.Context(), accept.MaxPayloadBytes+1)
	require.NoError(t, err)
}
