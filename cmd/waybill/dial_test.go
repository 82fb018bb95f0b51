package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// sent is what a call to a peer puts on the wire first. Nobody answers it.
func sent(t *testing.T, to peer) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	conn, err := to.dial(t.Cleanup, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return ours, nil }))
	require.NoError(t, err)
	defer func() { _, _ = conn.Close(), theirs.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		_, _ = redactorv1.NewRedactorClient(conn).Redact(ctx, &redactorv1.RedactRequest{Texts: []string{"the text"}})
	}()
	b := make([]byte, 16)
	require.NoError(t, theirs.SetReadDeadline(time.Now().Add(10*time.Second)))
	n, err := theirs.Read(b)
	require.NoError(t, err)
	return b[:n]
}

func TestDial_SpeaksTLSToOtherMachinesUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	handshake := []byte{0x16, 0x03} // a TLS record
	for name, tc := range map[string]struct {
		to  peer
		tls bool
	}{
		"another machine":            {peer{addr: "192.0.2.1:9092"}, true},
		"another machine, version 6": {peer{addr: "[2001:db8::1]:9092"}, true},
		"another machine on purpose": {peer{addr: "192.0.2.1:9092", plaintext: true}, false},
		"loopback":                   {peer{addr: "127.0.0.1:9092"}, false},
		"loopback of version 6":      {peer{addr: "[::1]:9092"}, false},
		"several, one elsewhere":     {peer{addr: "127.0.0.1:9092,192.0.2.1:9092"}, true},
		"several on loopback":        {peer{addr: "127.0.0.1:9092,127.0.0.1:9093"}, false},
	} {
		got := sent(t, tc.to)
		require.Equal(t, tc.tls, bytes.HasPrefix(got, handshake), "%s: %q", name, got)
	}
	require.True(t, peer{addr: "redactor:9092"}.tls(), "a name may be that of any machine")
	require.False(t, peer{addr: "localhost:9092"}.tls())
	require.True(t, peer{addr: "localhost:9092", cert: "cert.pem", key: "key.pem"}.tls(), "a certificate is shown within TLS")
}

func TestDial_RefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, []byte("no certificate"), 0o600))
	for name, tc := range map[string]struct {
		to   peer
		want string
	}{
		"no port":               {peer{addr: "redactor"}, "HOST:PORT"},
		"no host":               {peer{addr: ":9092"}, "HOST:PORT"},
		"a URL":                 {peer{addr: "https://redactor:9092"}, "HOST:PORT"},
		"a resolver of gRPC's":  {peer{addr: "passthrough:///redactor:9092"}, "HOST:PORT"},
		"one of several":        {peer{addr: "redactor:9092,"}, "HOST:PORT"},
		"a password":            {peer{addr: "u:hunter2@redactor:9092"}, "HOST:PORT"},
		"TLS and none":          {peer{addr: "redactor:9092", ca: ca, plaintext: true}, "one of the two"},
		"no certificate":        {peer{addr: "redactor:9092", ca: ca}, "no PEM certificate"},
		"a file that is absent": {peer{addr: "redactor:9092", ca: ca + "x"}, "no such file"},
	} {
		_, err := tc.to.dial(t.Cleanup)
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}

// A token never leaves for another machine in clear, unless that was asked for.
func TestDial_HoldsTheTokenBackWithoutTLS(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef"), 0o600))
	for to, clear := range map[peer]bool{
		{addr: "192.0.2.1:9092", tokenFile: token}:                  false,
		{addr: "192.0.2.1:9092", tokenFile: token, plaintext: true}: true,
		{addr: "127.0.0.1:9092", tokenFile: token}:                  true,
	} {
		creds, err := to.bearer()
		require.NoError(t, err)
		require.Equal(t, !clear, creds.RequireTransportSecurity(), to.addr)
	}
}

func TestEnvelopeAccept_HasTheSameDefault(t *testing.T) {
	t.Parallel()
	doc := filepath.Join(t.TempDir(), "answer.json")
	require.NoError(t, os.WriteFile(doc, []byte(sound), 0o600))
	_, err := command(t, "", "envelope", "accept", "--run", "r", "--node", "n", "--addr", "acceptor:9091", "--ca", "ca.pem", "--plaintext", doc)
	require.ErrorIs(t, err, errUsage)
	require.ErrorContains(t, err, "one of the two")
}
