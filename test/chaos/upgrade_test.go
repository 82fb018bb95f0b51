package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// All processes are replaced one by one under load. FAULT_OLD names the old binary. Without it the
// same binary is used, which tests only the replacement.
func TestFault_TheHostIsUpgradedProcessByProcess(t *testing.T) {
	if os.Getenv("WAYBILL") == "" {
		t.Skip("SKIPPED, needs a host of several processes: run `make spread` or `make faults`")
	}
	installed := filepath.Join(t.TempDir(), "waybill")
	install := func(bin string) {
		out, err := exec.Command("cp", bin, installed+".new").CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NoError(t, os.Rename(installed+".new", installed))
	}
	next, old := os.Getenv("WAYBILL"), os.Getenv("FAULT_OLD")
	if old == "" {
		t.Log("FAULT_OLD names no earlier build: the same one is before and after")
		old = next
	}
	install(old)
	s := newSpread(t, harness.Options{Env: []string{"WAYBILL=" + installed}})
	s.under(t, func() {
		install(next)
		for _, name := range s.names(t, "redactor", "acceptor", "eventlog", "dispatcher", "gateway") {
			before := s.pid(t, name)
			s.signal(t, name, syscall.SIGTERM)
			require.Eventually(t, func() bool { return s.pid(t, name) != before }, time.Minute, 20*time.Millisecond, "%s is replaced", name)
			wait(t, 2*lease) // an orchestrator waits until the process is ready
		}
	})
}
