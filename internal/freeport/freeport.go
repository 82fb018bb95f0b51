// Package freeport reserves ports for test servers whose port must be known before they start, or
// stay the same over restarts. A server that can listen on port 0 and report its port does not need
// it.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports are below the range that systems assign automatically (Linux from 32768 on, others from
// 49152). Otherwise an outgoing connection, or a server on port 0, could get the port before its
// use.
const (
	first = 12_000
	last  = 32_000
)

// Take returns a TCP port without a listener. No other test, in any process, gets it before this
// test ends.
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

// Addr returns a reserved port as a loopback address.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", Take(t))
}

// reserve binds the UDP port of the same number until the test ends: it blocks other calls of Take,
// but not a TCP server.
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
	_ = lis.Close() // the caller listens on it
	t.Cleanup(func() { _ = mark.Close() })
	return true
}
