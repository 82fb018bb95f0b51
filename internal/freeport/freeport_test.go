package freeport_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
)

// A port is free, is returned once, and is outside the range for automatic ports.
func TestTake_ReturnsAPortNoOtherProcessGets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		port := freeport.Take(t)
		require.False(t, seen[port], port)
		seen[port] = true
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		require.Less(t, n, 32_768)
		lis, err := net.Listen("tcp", ":"+port)
		require.NoError(t, err)
		require.NoError(t, lis.Close())
	}
}

// A port is available again when its test has ended.
func TestTake_KeepsAPortForItsTestOnly(t *testing.T) {
	t.Parallel()
	var port string
	t.Run("takes", func(t *testing.T) {
		port = freeport.Take(t)
		_, err := net.ListenPacket("udp", ":"+port)
		require.Error(t, err, "the port is reserved")
	})
	mark, err := net.ListenPacket("udp", ":"+port)
	require.NoError(t, err)
	require.NoError(t, mark.Close())
}
