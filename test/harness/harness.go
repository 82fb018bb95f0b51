// Package harness runs the real binary for black-box tests: a separate process, real sockets, and a
// data directory that survives a kill.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
)

// Ready is the content of the file that the host writes once it serves.
type Ready struct {
	HTTP string `json:"http"`
	GRPC string `json:"grpc"`
	NATS string `json:"nats"`
	// Metrics is the URL of the metrics and profiles. Empty unless they are served.
	Metrics string `json:"metrics"`
	PID     int    `json:"pid"`
}

// Host is one host over the lifetimes of its processes: it can be killed and restarted on the same
// data.
type Host struct {
	Ready
	t   testing.TB
	dir string
	// command returns the command line before args.
	command func(*Host) []string
	args    []string
	env     []string
	cmd     *exec.Cmd
	done    chan struct{}
	// tee gets the whole output; it may be nil
	tee io.Writer
	mu  sync.Mutex // guards log and writes to tee
	log []byte
}

// Options override the defaults of a host.
type Options struct {
	// Args and Env are added to those of the command.
	Args, Env []string
	// Output gets the host's whole output; Log keeps only its end. nil disables it.
	Output io.Writer
	// Dir is the parent of the host's folder; empty creates a fresh one.
	Dir string
}

// startTimeout limits a start. A store of several thousand frames is read within it.
const startTimeout = 60 * time.Second

// Start runs `waybill dev` with further arguments on a fresh data directory.
// The host is stopped when the test ends.
func Start(t testing.TB, args ...string) *Host {
	t.Helper()
	return StartIn(t, t.TempDir(), args...)
}

// StartIn is Start on a given directory.
func StartIn(t testing.TB, dir string, args ...string) *Host {
	t.Helper()
	return launch(t, &Host{t: t, dir: dir, command: dev, args: args})
}

// StartWith is Start with further options.
func StartWith(t testing.TB, o Options) *Host {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	return launch(t, &Host{t: t, dir: o.Dir, command: dev, args: o.Args, env: o.Env, tee: o.Output})
}

// dev is the command of a whole host. It has no load limits, so that tests pass on a slow machine.
// bench measures overload.
func dev(h *Host) []string {
	return []string{"dev", "--data-dir", h.Dir(), "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--demo-runs=false", "--start-delay=0"}
}

// Serve runs one service in a separate process, `waybill serve SERVICE`, at an address that it
// keeps over restarts.
func Serve(t testing.TB, service string, args ...string) *Host {
	t.Helper()
	h := Begin(t, service, args...)
	h.Await()
	return h
}

// Begin is Serve without waiting: dependencies of the service may still be missing. Its address is
// known already.
func Begin(t testing.TB, service string, args ...string) *Host {
	t.Helper()
	return BeginWith(t, service, Options{Args: args})
}

// BeginWith is Begin with further options.
func BeginWith(t testing.TB, service string, o Options) *Host {
	t.Helper()
	addr := freeport.Addr(t)
	h := prepare(t, &Host{
		t: t, dir: t.TempDir(), command: func(*Host) []string { return []string{"serve", service, "--grpc-addr", addr} },
		args: o.Args, env: o.Env, tee: o.Output,
	})
	h.GRPC = addr
	h.Spawn()
	return h
}

func launch(t testing.TB, h *Host) *Host {
	t.Helper()
	prepare(t, h)
	h.Launch()
	return h
}

func prepare(t testing.TB, h *Host) *Host {
	t.Helper()
	t.Cleanup(h.end)
	return h
}

// end kills a running process, and prints its output if the test failed.
func (h *Host) end() {
	h.Kill()
	if h.t.Failed() {
		h.t.Logf("the host said:\n%s", h.Log())
	}
}

// Setenv sets a variable for the processes launched from now on.
func (h *Host) Setenv(kv string) { h.env = append(h.env, kv) }

// Dir is the data directory.
func (h *Host) Dir() string { return filepath.Join(h.dir, "data") }

// Launch starts a process on the host's data and waits until it serves.
func (h *Host) Launch() {
	h.t.Helper()
	h.Spawn()
	h.Await()
}

// Await waits until the spawned process serves.
func (h *Host) Await() {
	h.t.Helper()
	if err := h.await(); err != nil {
		h.t.Fatalf("launch host: %v", err)
	}
}

// Ended waits until the process ends by itself, and returns its state.
func (h *Host) Ended() *os.ProcessState {
	h.t.Helper()
	select {
	case <-h.done:
	case <-time.After(startTimeout):
		h.t.Fatalf("host has not ended by itself within %s", startTimeout)
	}
	return h.cmd.ProcessState
}

// Exited is closed when the last spawned process has ended.
func (h *Host) Exited() <-chan struct{} { return h.done }

// Spawn starts a process on the host's data without waiting, so that it can be killed during its
// start.
func (h *Host) Spawn() {
	h.t.Helper()
	if err := h.spawn(); err != nil {
		h.t.Fatalf("start host: %v", err)
	}
}

// Restart kills the host and launches it again on the same data.
func (h *Host) Restart() {
	h.t.Helper()
	h.Kill()
	h.Launch()
}

func (h *Host) readyFile() string { return filepath.Join(h.dir, "ready.json") }

func (h *Host) spawn() error {
	bin, err := binary()
	if err != nil {
		return err
	}
	if err := os.Remove(h.readyFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	h.cmd = exec.Command(bin, append(append(h.command(h), "--ready-file", h.readyFile()), h.args...)...)
	h.cmd.Env = append(withoutKeys(os.Environ()), h.env...)
	h.cmd.Stdout, h.cmd.Stderr = h, h
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.done = make(chan struct{})
	go func(c *exec.Cmd, done chan struct{}) {
		_ = c.Wait() // its state has the result
		close(done)
	}(h.cmd, h.done)
	return nil
}

// await polls for the file that the host writes when ready.
func (h *Host) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(h.readyFile())
		if err == nil {
			h.Ready = Ready{}
			return json.Unmarshal(b, &h.Ready)
		}
		select {
		case <-h.done:
			return fmt.Errorf("host ended before it was ready: %s", h.cmd.ProcessState)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Kill kills the process, like a power cut.
func (h *Host) Kill() { h.signal(syscall.SIGKILL) }

// Quit ends the process with a dump of all goroutines in its output.
func (h *Host) Quit() { h.signal(syscall.SIGQUIT) }

// Stop ends the process cleanly and returns its state.
func (h *Host) Stop() *os.ProcessState {
	h.signal(syscall.SIGTERM)
	return h.cmd.ProcessState
}

// stopTimeout limits a clean stop. After it the process is killed and the test fails.
const stopTimeout = 20 * time.Second

func (h *Host) signal(s syscall.Signal) {
	if h.done == nil {
		return // it never started
	}
	select {
	case <-h.done:
		return
	default:
	}
	_ = h.cmd.Process.Signal(s) // it may have just ended
	select {
	case <-h.done:
	case <-time.After(stopTimeout):
		_ = h.cmd.Process.Kill()
		<-h.done
		h.t.Errorf("host did not stop within %s of %s\n%s", stopTimeout, s, h.Log())
	}
}

// maxLog is the minimum of recorded output in bytes: the end, where a host reports errors.
const maxLog = 256 << 10

// Write records the process's standard output and error.
func (h *Host) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.log) > 2*maxLog {
		h.log = append(h.log[:0], h.log[len(h.log)-maxLog:]...)
	}
	h.log = append(h.log, p...)
	if h.tee != nil {
		return h.tee.Write(p)
	}
	return len(p), nil
}

// Log returns the host's output so far; of a long one the end.
func (h *Host) Log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.log)
}

// AwaitLog waits until the host's output has each text. Use it for a line that says why something
// happened: the line may follow what a client sees, and arrives over a pipe.
func (h *Host) AwaitLog(texts ...string) {
	h.t.Helper()
	for _, text := range texts {
		require.Eventually(h.t, func() bool { return strings.Contains(h.Log(), text) },
			30*time.Second, 10*time.Millisecond, "the host's log has no %q", text)
	}
}

// withoutKeys removes vendors' API keys from an environment: with one of them a host would call a
// vendor's models.
func withoutKeys(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"}, name)
	})
}

// InOneProcess skips a test if the host runs as several processes. why names the feature that only
// one process has.
func InOneProcess(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("WAYBILL") != "" {
		t.Skip("SKIPPED, needs a host in one process: " + why)
	}
}
