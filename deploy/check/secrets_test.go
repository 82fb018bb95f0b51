package check

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
)

// authority is a certificate authority for the services of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	require.NoError(t, err)
	return &authority{cert: cert, key: key, pem: block("CERTIFICATE", der)}
}

// issue makes a certificate for the test's address, valid for client and server.
func (a *authority) issue(t *testing.T, service string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: service}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.cert, private.Public(), a.key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return block("CERTIFICATE", der), block("PRIVATE KEY", secret)
}

func auditKey(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return block("PRIVATE KEY", der)
}

// tools is the folder of binaries built by tests; TestMain removes it.
var tools = filepath.Join(os.TempDir(), fmt.Sprintf("waybill-check-%d", os.Getpid()))

// natsServer is the NATS server's binary, built once.
var natsServer = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(tools, "nats-server")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", bin, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil { //nolint:gosec,noctx // G204: ours; bounded by the test's timeout
		return "", fmt.Errorf("build nats-server: %w\n%s", err, out)
	}
	return bin, nil
})

// startNATS runs a server with the settings from docs/kubernetes.md.
func startNATS(t *testing.T) (url string) {
	t.Helper()
	bin, err := natsServer()
	require.NoError(t, err)
	conf := regexp.MustCompile("(?s)```\n(max_payload: .*?)```").FindStringSubmatch(source(t, "../../docs/kubernetes.md"))
	require.NotNil(t, conf)
	dir, port := t.TempDir(), freeport.Take(t)
	file := filepath.Join(dir, "nats.conf")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(conf[1], "/data", dir)), 0o600))
	process(t, dir, bin, "--config", file, "--addr", "127.0.0.1", "--port", port)
	return "nats://127.0.0.1:" + port
}
