package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// host is `waybill dev` in a separate process.
type host struct {
	// http is the address of its REST API.
	http   string
	cmd    *exec.Cmd
	output *bytes.Buffer
	// done is closed once the process has ended.
	done chan struct{}
}

const (
	// startTimeout limits a start on an empty directory.
	startTimeout = 30 * time.Second
	// stopTimeout limits a clean stop; then the process is killed.
	stopTimeout = 10 * time.Second
)

// launch starts the host on an empty directory and waits until it serves.
func launch(ctx context.Context, bin, dir string, env []string, args ...string) (*host, error) {
	ready := filepath.Join(dir, "ready.json")
	args = append([]string{
		"dev", "--data-dir", filepath.Join(dir, "data"), "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--demo-runs=false", "--ready-file", ready,
	}, args...)
	h := &host{cmd: exec.CommandContext(ctx, bin, args...), output: &bytes.Buffer{}, done: make(chan struct{})} //nolint:gosec // G204: the user names the binary
	h.cmd.Env = append(withoutSettings(os.Environ()), env...)
	h.cmd.Stdout, h.cmd.Stderr = h.output, h.output
	h.cmd.Cancel = func() error { return h.cmd.Process.Signal(os.Interrupt) }
	h.cmd.WaitDelay = stopTimeout
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	go func() {
		_ = h.cmd.Wait() // its state has the result
		close(h.done)
	}()
	if err := h.await(ctx, ready); err != nil {
		h.stop()
		return nil, fmt.Errorf("start %s: %w\n%s", bin, err, h.output)
	}
	return h, nil
}

// await polls for the file that the host writes when it is ready.
func (h *host) await(ctx context.Context, ready string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(ready); err == nil { //nolint:gosec // G304: our own directory
			var addresses struct {
				HTTP string `json:"http"`
			}
			err := json.Unmarshal(b, &addresses)
			h.http = addresses.HTTP
			return err
		}
		select {
		case <-h.done:
			return errors.New("the process ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("the process is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// stop ends the process and waits for its end.
func (h *host) stop() {
	_ = h.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-h.done:
	case <-time.After(stopTimeout):
		_ = h.cmd.Process.Kill()
		<-h.done
	}
}

// withoutSettings removes the reader's own settings and keys from an environment, so that the
// example is reproducible and no real key is sent to a double.
func withoutSettings(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "WAYBILL_") || strings.HasPrefix(name, "OPENWOP_") ||
			slices.Contains([]string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"}, name)
	})
}
