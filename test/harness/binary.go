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

// built is the host's binary: $WAYBILL_BIN, or one that is built once in a test
// process.
var built struct {
	once sync.Once
	dir  string // ours to remove; empty if the binary is not
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
	// As `make build` does: a quarter of the linker's work is for debuggers.
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "waybill.dev/waybill/cmd/waybill")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build waybill: %w\n%s", err, out)
	}
	return path, nil
}

// Binary is the host's binary, for those who run it in their own way.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Clean removes the binary that was built for this test process. TestMain calls
// it when the tests are over and no host runs any more.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary directory
	}
}

// Command runs the binary to its end, and gives what it printed and its exit
// status.
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
