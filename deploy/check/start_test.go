package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// node is the machine that the pods of the test are on: the files of their Secrets,
// and NATS.
type node struct {
	files string
	nats  string
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{files: t.TempDir()}
	n.put(t, "token/token", []byte(strings.Repeat("t", 32)))
	n.put(t, "host/host.key", []byte(strings.Repeat("h", 32)))
	cert, key := certificate(t)
	n.put(t, "tls/tls.crt", cert)
	n.put(t, "tls/ca.crt", cert)
	n.put(t, "tls/tls.key", key)
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, MaxPayload: 8 << 20,
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(30*time.Second))
	n.nats = srv.ClientURL()
	return n
}

// put writes a file as the volume of a Secret has it: not readable by everybody.
func (n *node) put(t *testing.T, name string, content []byte) {
	t.Helper()
	file := filepath.Join(n.files, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	require.NoError(t, os.WriteFile(file, content, 0o440)) //nolint:gosec // G306: what the chart sets
}

// certificate vouches for itself, at the address of the test.
func certificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "waybill"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// addresses of all interfaces, and of other services.
var (
	listens = regexp.MustCompile(`(?m)^([a-z]+-addr): ":[0-9]+"$`)
	calls   = regexp.MustCompile(`(?m)^(redactor): "[^"]+"$`)
)

// run starts a service with the settings that the chart gives it. What a cluster
// would give is replaced: addresses, and the place of files.
func (n *node) run(t *testing.T, s set, service, redactor string) *harness.Host {
	t.Helper()
	for _, o := range s.of("ConfigMap") {
		if o.service() != service {
			continue
		}
		doc := strings.ReplaceAll(o.Data["config.yaml"], "/etc/waybill/", n.files+"/")
		doc = listens.ReplaceAllString(doc, `$1: "127.0.0.1:0"`)
		doc = calls.ReplaceAllString(doc, `$1: "`+redactor+`"`)
		doc = regexp.MustCompile(`(?m)^grpc-addr: .*\n`).ReplaceAllString(doc, "") // the harness gives it
		n.put(t, service+"/config.yaml", []byte(doc))
	}
	args := []string{"--config", filepath.Join(n.files, service, "config.yaml")}
	if service != "redactor" {
		args = append(args, "--nats", n.nats)
	}
	return harness.Serve(t, service, args...)
}

// The settings that the chart renders start the services, and each probe answers
// where the chart asks.
func TestServices_StartWithTheSettingsOfTheChart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts real processes; left out under -short")
	}
	out, messages, ok := template(t, "-f", filepath.Join(chart, "ci", "envelopes-values.yaml"), "--set", "nats.logReplicas=1")
	require.True(t, ok, messages)
	s := parse(t, []byte(out))
	n := newNode(t)
	redactor := n.run(t, s, "redactor", "")
	acceptor := n.run(t, s, "acceptor", redactor.GRPC)
	for _, o := range s.of("Deployment") {
		c := spec[deployment](t, o).Template.Spec.Containers[0]
		host := map[string]*harness.Host{"redactor": redactor, "acceptor": acceptor}[o.service()]
		require.NotNil(t, host, o.name())
		base := strings.TrimSuffix(host.Metrics, "/metrics")
		for _, path := range []string{c.Startup.HTTP.Path, c.Readiness.HTTP.Path, c.Liveness.HTTP.Path, "/metrics"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
			require.NoError(t, err)
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusOK, res.StatusCode, "%s %s", o.name(), path)
		}
		began := time.Now()
		require.Zero(t, host.Stop().ExitCode(), o.name())
		require.Less(t, time.Since(began), drain, o.name())
	}
}
