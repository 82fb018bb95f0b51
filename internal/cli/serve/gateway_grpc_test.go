package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	grpcstatus "google.golang.org/grpc/status"

	"waybill.dev/waybill/internal/natsd"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "gateway"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return file
	}
	return write("tls.crt", "CERTIFICATE", der), write("tls.key", "PRIVATE KEY", secret)
}

// OpenWOP host contract §9.4: reflection is the operator's to switch on; health says what
// probes say; all of it over TLS.
func TestGateway_ServesHealthAndReflectionOverTLS(t *testing.T) {
	t.Parallel()
	srv, err := natsd.Start(t.Context(), natsd.Config{
		Dir:  t.TempDir(),
		Addr: "127.0.0.1:0",
		Log:  slog.New(slog.DiscardHandler),
	}, "secret")
	require.NoError(t, err)
	cert, key := selfSigned(t)
	addrs := map[bool]string{false: freeAddr(t), true: freeAddr(t)}
	var ends []func()
	for reflects, addr := range addrs {
		args := []string{"--tls-cert", cert, "--tls-key", key}
		if reflects {
			args = append(args, "--grpc-reflection")
		}
		ends = append(ends, startGateway(t, freeAddr(t), addr, srv.Addr(), args...))
	}
	t.Cleanup(func() {
		for _, end := range ends {
			end()
		}
		srv.Stop()
	})
	creds, err := credentials.NewClientTLSFromFile(cert, "")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for reflects, addr := range addrs {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.Eventually(t, func() bool {
			h, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: openwopv1.Engine_ServiceDesc.ServiceName})
			return err == nil && h.GetStatus() == healthv1.HealthCheckResponse_NOT_SERVING
		}, patience, 10*time.Millisecond, "the other services are not there")
		_, err = openwopv1.NewEngineClient(conn).GetRun(ctx, &openwopv1.GetRunRequest{RunId: "r"})
		require.Equal(t, codes.Unauthenticated, grpcstatus.Code(err))

		s, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}))
		res, err := s.Recv()
		if !reflects {
			require.Equal(t, codes.Unimplemented, grpcstatus.Code(err))
			continue
		}
		require.NoError(t, err)
		var names []string
		for _, s := range res.GetListServicesResponse().GetService() {
			names = append(names, s.GetName())
		}
		require.Contains(t, names, openwopv1.Engine_ServiceDesc.ServiceName)
		require.NoError(t, s.CloseSend())
	}
}
