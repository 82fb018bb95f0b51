package harness

import (
	"os"
	"sync"
	"syscall"
	"testing"
)

// Canary is the value of the test seams' secret CanaryID, for tests that set it.
const (
	CanaryID = "openwop-conformance-canary-secret"
	Canary   = "canary-2c9e7f51b08d6a34"
)

// Shared is one host for all tests of a package. It starts on first use; Close, in TestMain, ends
// it.
type Shared struct {
	Args, Env []string
	// Setup prepares the fresh host, once. nil does nothing.
	Setup func(h *Host) error

	once sync.Once
	host *Host
	err  error
}

// Host returns the package's host. The test fails if it did not start, and is skipped under -short.
func (s *Shared) Host(t testing.TB) *Host {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	s.once.Do(s.start)
	if s.err != nil {
		t.Fatalf("shared host: %v\n%s", s.err, s.host.Log())
	}
	return s.host
}

func (s *Shared) start() {
	s.host = &Host{command: dev, args: s.Args, env: s.Env}
	if s.host.dir, s.err = os.MkdirTemp("", "waybill-shared"); s.err != nil {
		return
	}
	if s.err = s.host.spawn(); s.err != nil {
		return
	}
	if s.err = s.host.await(); s.err != nil || s.Setup == nil {
		return
	}
	s.err = s.Setup(s.host)
}

// Close ends the host if it was started, and removes its data and the built binary. It returns the
// host's output.
func (s *Shared) Close() string {
	defer Clean()
	if s.host == nil || s.host.done == nil {
		return ""
	}
	_ = s.host.cmd.Process.Signal(syscall.SIGKILL) // it may have just ended
	<-s.host.done
	_ = os.RemoveAll(s.host.dir) // a temporary directory
	return s.host.Log()
}
