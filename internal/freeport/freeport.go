// Package freeport finds ports for servers of tests that have to be told one before they
// start, because others must know it by then or find it again after a restart. A server
// that can choose for itself, and say what it chose, needs none of this.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports given are below those that systems give to whoever asks for any (Linux from
// 32768 on, others from 49152): a connection that is made, or a server that listens
// at port 0, between the finding of a port and its use would be given it otherwise.
const (
	first = 12_000
	last  = 32_000
)

// Take is a TCP port that nobody listens on, and that no other test, in whichever
// process, is given before this one has ended.
func Take(t testing.TB) string {
	t.Helper()
	for range last - first {
		port := strconv.Itoa(first + rand.IntN(last-first)) //nolint:gosec // G404: no secret
		if reserve(t, port) {
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free", first, last)
	return ""
}

// Addr is a port taken, as an address of this machine alone.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", Take(t))
}

// reserve keeps the UDP port of the same number until the test ends: what others who
// take ports meet, and a server that listens over TCP does not.
func reserve(t testing.TB, port string) bool {
	t.Helper()
	var sockets net.ListenConfig
	mark, err := sockets.ListenPacket(t.Context(), "udp", ":"+port)
	if err != nil {
		return false
	}
	lis, err := sockets.Listen(t.Context(), "tcp", ":"+port)
	if err != nil {
		_ = mark.Close() // nothing was sent
		return false
	}
	_ = lis.Close() // whoever asked takes it
	t.Cleanup(func() { _ = mark.Close() })
	return true
}
