package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ServeAll runs one process of each service on a NATS server, without an audit log. log has the
// flags of the connection to the server, gateway further flags of the gateway. It returns the
// gateway.
func ServeAll(t testing.TB, log []string, gateway ...string) *Host {
	t.Helper()
	return ServeEach(t, log, gateway...)["gateway"]
}

// ServeEach is ServeAll, but returns the process of each service by name.
func ServeEach(t testing.TB, log []string, gateway ...string) map[string]*Host {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "host.key")
	if err := os.WriteFile(secret, []byte(strings.Repeat("k", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	redactor := Serve(t, "redactor")
	acceptor := Serve(t, "acceptor", slices.Concat(log, []string{"--redactor", redactor.GRPC})...)
	events := Serve(t, "eventlog", slices.Concat(log, []string{"--data-dir", t.TempDir()})...)
	peers := slices.Concat(log, []string{"--redactor", redactor.GRPC, "--acceptor", acceptor.GRPC, "--eventlog", events.GRPC, "--host-key-file", secret})
	dispatcher := Serve(t, "dispatcher", peers...)
	door := Serve(t, "gateway", slices.Concat(peers, []string{"--dispatcher", dispatcher.GRPC, "--http-addr", "127.0.0.1:0", "--audit=false"}, gateway)...)
	return map[string]*Host{"redactor": redactor, "acceptor": acceptor, "eventlog": events, "dispatcher": dispatcher, "gateway": door}
}
