package mtls_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/mtls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority is a certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	der  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return &authority{c, key, der}
}

func write(t *testing.T, file, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// issue writes a certificate for this machine, and the trusted authority.
func (a *authority) issue(t *testing.T, dir string, trusts *authority) mtls.Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "service"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	f := mtls.Files{
		Cert: filepath.Join(dir, "tls.crt"),
		Key:  filepath.Join(dir, "tls.key"),
		CA:   filepath.Join(dir, "ca.crt"),
	}
	write(t, f.Key, "PRIVATE KEY", secret)
	write(t, f.Cert, "CERTIFICATE", der)
	write(t, f.CA, "CERTIFICATE", trusts.der)
	return f
}

const every = 10 * time.Millisecond

func load(t *testing.T, f mtls.Files) *mtls.Certs {
	t.Helper()
	c, err := mtls.Load(f, every)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, f mtls.Files) string {
	t.Helper()
	creds, err := load(t, f).Server()
	require.NoError(t, err)
	srv := grpc.NewServer(grpc.Creds(creds))
	healthv1.RegisterHealthServer(srv, health.NewServer())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() { srv.Stop(); require.NoError(t, <-done) })
	return lis.Addr().String()
}

// call makes a new connection.
func call(t *testing.T, addr string, c *mtls.Certs) error {
	t.Helper()
	creds, err := c.Client()
	require.NoError(t, err)
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

func TestServer_AcceptsOnlyClientsOfItsAuthority(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t, "ours"), newAuthority(t, "others")
	addr := serve(t, ours.issue(t, t.TempDir(), ours))
	good := ours.issue(t, t.TempDir(), ours)
	for name, tt := range map[string]struct {
		files mtls.Files
		heard bool
	}{
		"one of ours":                   {good, true},
		"without a certificate":         {mtls.Files{CA: good.CA}, false},
		"one of others":                 {others.issue(t, t.TempDir(), ours), false},
		"one that does not trust it":    {ours.issue(t, t.TempDir(), others), false},
		"one that the system vouches":   {mtls.Files{}, false},
		"one of ours, under no CA file": {mtls.Files{Cert: good.Cert, Key: good.Key}, false},
	} {
		err := call(t, addr, load(t, tt.files))
		require.Equal(t, tt.heard, err == nil, "%s: %v", name, err)
	}
}

func TestServer_WithoutCAAcceptsEveryClient(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	f := ours.issue(t, t.TempDir(), ours)
	addr := serve(t, mtls.Files{Cert: f.Cert, Key: f.Key})
	require.NoError(t, call(t, addr, load(t, mtls.Files{CA: f.CA})))
}

// Certificates are replaced while services run: first the trusted authority, then the own
// certificate.
func TestCerts_AreReadAgain(t *testing.T) {
	t.Parallel()
	before, after := newAuthority(t, "before"), newAuthority(t, "after")
	server, client := t.TempDir(), t.TempDir()
	addr := serve(t, before.issue(t, server, before))
	c := load(t, before.issue(t, client, before))
	require.NoError(t, call(t, addr, c))

	after.issue(t, server, after)
	after.issue(t, client, after)
	require.Eventually(t, func() bool { return call(t, addr, c) == nil }, 10*time.Second, every)
	require.Error(t, call(t, addr, load(t, before.issue(t, t.TempDir(), after))), "the authority before is trusted no longer")
}

func TestConfig_ServesHTTP(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	f := ours.issue(t, t.TempDir(), ours)
	lis, err := tls.Listen("tcp", "127.0.0.1:0", load(t, f).Config())
	require.NoError(t, err)
	srv := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	defer func() { _ = srv.Close(); require.ErrorIs(t, <-done, http.ErrServerClosed) }()
	cert, err := x509.ParseCertificate(ours.der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+lis.Addr().String(), nil)
	require.NoError(t, err)
	res, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusNotFound, res.StatusCode)
}

func TestLoad_SaysWhatIsWrongWithFiles(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	dir := t.TempDir()
	f := ours.issue(t, dir, ours)
	for name, tt := range map[string]struct {
		files mtls.Files
		says  string
	}{
		"half of a certificate": {mtls.Files{Cert: f.Cert}, "belong together"},
		"a file that is away":   {mtls.Files{CA: filepath.Join(dir, "nothing")}, "no such file"},
		"a CA that is none":     {mtls.Files{CA: f.Key}, "no PEM certificate"},
		"a key of another": {
			mtls.Files{Cert: f.Cert, Key: ours.issue(t, t.TempDir(), ours).Key},
			"private key does not match",
		},
	} {
		_, err := mtls.Load(tt.files, every)
		require.ErrorContains(t, err, tt.says, name)
	}
}
