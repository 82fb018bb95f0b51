package tools

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
)

// installed installs the peers' packages, once for all tests.
var installed = sync.OnceValues(func() (dir string, err error) {
	if dir, err = filepath.Abs("peers"); err != nil {
		return "", err
	}
	cmd := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund") //nolint:noctx // bounded by the test's timeout
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", &installError{err, string(out)}
	}
	return dir, nil
})

type installError struct {
	err error
	out string
}

func (e *installError) Error() string { return "npm ci: " + e.err.Error() + "\n" + e.out }

// peers returns the folder of the peers that run on Node.js.
func peers(t *testing.T) string {
	t.Helper()
	needsHost(t)
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("SKIPPED, " + program + " is not installed: install it to test third-party peers")
		}
	}
	dir, err := installed()
	require.NoError(t, err)
	return dir
}

// serve starts a peer that listens on a port, and returns the port.
func serve(t *testing.T, env []string, args ...string) (port string) {
	t.Helper()
	cmd := exec.Command("node", append([]string{"--import", "./local.mjs"}, args...)...) //nolint:noctx // killed below
	cmd.Dir = peers(t)
	cmd.Env = append(append(os.Environ(), "PORT="+freeport.Take(t)), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ports := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if p, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				ports <- p
				break
			}
		}
		_, _ = io.Copy(io.Discard, said)
	}()
	select {
	case port = <-ports:
	case <-time.After(30 * time.Second):
		require.Fail(t, "the peer does not listen", "%v", args)
	}
	return port
}
