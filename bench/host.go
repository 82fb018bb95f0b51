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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// host is the built binary, running.
type host struct {
	cmd *exec.Cmd
	dir string
	// env and command start it
	env, command []string
	ready        struct {
		HTTP string `json:"http"`
		GRPC string `json:"grpc"`
		// NATS is the log's address of a host in several processes.
		NATS string `json:"nats"`
		// Metrics is the address of metrics and profiles, if enabled.
		Metrics string `json:"metrics"`
	}
	took time.Duration
	out  bytes.Buffer
}

// startHost runs the binary on a fresh directory under dir.
func startHost(ctx context.Context, bin, dir string, args ...string) (*host, error) {
	return startHostIn(ctx, nil, bin, dir, args...)
}

// startHostIn runs it with additional environment, each NAME=VALUE.
func startHostIn(ctx context.Context, env []string, bin, dir string, args ...string) (*host, error) {
	return launch(ctx, env, bin, dir, func(data string) []string {
		return append([]string{"dev", "--data-dir", data, "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--demo-runs=false"}, args...)
	})
}

// startAcceptor runs the acceptor alone, on a fresh directory under dir.
func startAcceptor(ctx context.Context, bin, dir string, args ...string) (*host, error) {
	return launch(ctx, nil, bin, dir, func(data string) []string {
		return append([]string{"serve", "acceptor", "--data-dir", data, "--grpc-addr", "127.0.0.1:0"}, args...)
	})
}

func launch(ctx context.Context, env []string, bin, dir string, args func(data string) []string) (*host, error) {
	data, err := os.MkdirTemp(dir, "host")
	if err != nil {
		return nil, err
	}
	h := &host{dir: data}
	return h, h.begin(ctx, env, append([]string{bin}, args(filepath.Join(data, "data"))...))
}

// restart restarts a killed host on the same directory.
func (h *host) restart(ctx context.Context) error {
	return h.begin(ctx, h.env, h.command)
}

func (h *host) begin(ctx context.Context, env, command []string) error {
	h.env, h.command = env, command
	ready := filepath.Join(h.dir, "ready.json")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	h.cmd = exec.CommandContext(ctx, command[0], append(command[1:], "--ready-file", ready)...) //nolint:gosec // G204: the binary to measure
	h.cmd.Stdout, h.cmd.Stderr = &h.out, &h.out
	h.cmd.Env = append(os.Environ(), env...)
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := h.cmd.Start(); err != nil {
		return err
	}
	for {
		b, err := os.ReadFile(ready) //nolint:gosec // G304: our own directory
		if err == nil {
			h.took = time.Since(began)
			return json.Unmarshal(b, &h.ready)
		}
		if time.Since(began) > time.Minute {
			h.stop()
			return fmt.Errorf("host not ready: %s", h.out.String())
		}
		time.Sleep(time.Millisecond)
	}
}

func (h *host) stop() {
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	_ = h.cmd.Wait()
	_ = os.RemoveAll(h.dir)
}

// proc is the kernel's data about the host's process.
type proc struct {
	rssMB float64
	// peakMB is its maximum.
	peakMB float64
	// ownMB is memory that the kernel can't reclaim: without file pages.
	ownMB float64
	cpu   time.Duration
}

// clockTick is the unit of /proc's CPU times on Linux.
const clockTick = 10 * time.Millisecond

func (h *host) proc() (proc, error) { return procOf(h.cmd.Process.Pid) }

func procOf(pid int) (proc, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return proc{}, err
	}
	var p proc
	for line := range strings.Lines(string(status)) {
		name, rest, _ := strings.Cut(line, ":")
		into := map[string]*float64{"VmRSS": &p.rssMB, "VmHWM": &p.peakMB, "RssAnon": &p.ownMB}[name]
		if into == nil {
			continue
		}
		kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if err != nil {
			return p, err
		}
		*into = kb / 1024
	}
	p.cpu, err = cpuOf(dir)
	return p, err
}

// cpuOf reads a process's CPU time without its children.
func cpuOf(dir string) (time.Duration, error) {
	stat, err := os.ReadFile(dir + "/stat") //nolint:gosec // G304: /proc
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, errors.New("/proc stat is short")
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick, errors.Join(err1, err2)
}
