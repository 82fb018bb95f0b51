package peer

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

// sent returns the first bytes of a call to a peer. No server answers it.
func sent(t *testing.T, to Address) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	conn, err := to.Dial(t.Cleanup, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return ours, nil }))
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

func TestDial_UsesTLSForOtherMachinesByDefault(t *testing.T) {
	t.Parallel()
	handshake := []byte{0x16, 0x03} // a TLS record
	for name, tc := range map[string]struct {
		to  Address
		tls bool
	}{
		"another machine":            {Address{Addr: "192.0.2.1:9092"}, true},
		"another machine, version 6": {Address{Addr: "[2001:db8::1]:9092"}, true},
		"another machine on purpose": {Address{Addr: "192.0.2.1:9092", Plaintext: true}, false},
		"loopback":                   {Address{Addr: "127.0.0.1:9092"}, false},
		"loopback of version 6":      {Address{Addr: "[::1]:9092"}, false},
		"several, one elsewhere":     {Address{Addr: "127.0.0.1:9092,192.0.2.1:9092"}, true},
		"several on loopback":        {Address{Addr: "127.0.0.1:9092,127.0.0.1:9093"}, false},
	} {
		got := sent(t, tc.to)
		require.Equal(t, tc.tls, bytes.HasPrefix(got, handshake), "%s: %q", name, got)
	}
	require.True(t, Address{Addr: "redactor:9092"}.tls(), "a name may be that of any machine")
	require.False(t, Address{Addr: "localhost:9092"}.tls())
	require.True(t, Address{
		Addr: "localhost:9092",
		Cert: "cert.pem",
		Key:  "key.pem",
	}.tls(), "a certificate is shown within TLS")
}

func TestDial_RejectsContradictorySettings(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, []byte("no certificate"), 0o600))
	for name, tc := range map[string]struct {
		to   Address
		want string
	}{
		"no port":               {Address{Addr: "redactor"}, "HOST:PORT"},
		"no host":               {Address{Addr: ":9092"}, "HOST:PORT"},
		"a URL":                 {Address{Addr: "https://redactor:9092"}, "HOST:PORT"},
		"a resolver of gRPC's":  {Address{Addr: "passthrough:///redactor:9092"}, "HOST:PORT"},
		"one of several":        {Address{Addr: "redactor:9092,"}, "HOST:PORT"},
		"a password":            {Address{Addr: "u:hunter2@redactor:9092"}, "HOST:PORT"},
		"TLS and none":          {Address{Addr: "redactor:9092", CA: ca, Plaintext: true}, "one of the two"},
		"no certificate":        {Address{Addr: "redactor:9092", CA: ca}, "no PEM certificate"},
		"a file that is absent": {Address{Addr: "redactor:9092", CA: ca + "x"}, "no such file"},
	} {
		_, err := tc.to.Dial(t.Cleanup)
		require.ErrorContains(t, err, tc.want, name)
		require.NotContains(t, err.Error(), "hunter2", name)
	}
}

// A token is not sent to another machine without TLS, unless Plaintext is set.
func TestDial_SendsNoTokenWithoutTLS(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("0123456789abcdef"), 0o600))
	for to, clear := range map[Address]bool{
		{Addr: "192.0.2.1:9092", TokenFile: token}:                  false,
		{Addr: "192.0.2.1:9092", TokenFile: token, Plaintext: true}: true,
		{Addr: "127.0.0.1:9092", TokenFile: token}:                  true,
	} {
		creds, err := to.bearer()
		require.NoError(t, err)
		require.Equal(t, !clear, creds.RequireTransportSecurity(), to.Addr)
	}
}
