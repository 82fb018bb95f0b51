package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the host's binary: $WAYBILL_BIN, or one built once per test process.
var built struct {
	once sync.Once
	dir  string // to remove; empty with $WAYBILL_BIN
	path string
	err  error
}

func binary() (string, error) {
	built.once.Do(func() {
		if built.path = os.Getenv("WAYBILL_BIN"); built.path == "" {
			built.path, built.err = build()
		}
	})
	return built.path, built.err
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "waybill-bin")
	if err != nil {
		return "", err
	}
	built.dir = dir
	path := filepath.Join(dir, "waybill")
	// The same linker flags as `make build`: debug data is a quarter of the linker's work.
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "waybill.dev/waybill/cmd/waybill")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build waybill: %w\n%s", err, out)
	}
	return path, nil
}

// Binary returns the path of the host's binary, for tests that start it themselves.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Clean removes the binary built for this test process. TestMain calls it after the tests, when no
// host runs.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary directory
	}
}

// Command runs the binary to its end, and returns its output and exit status.
func Command(t testing.TB, args ...string) (out string, status int) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatalf("the binary: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	b, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("run %v: %v", args, err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}
