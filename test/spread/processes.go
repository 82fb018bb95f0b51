package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// processes are kept running, as by an orchestrator: a process that dies is restarted at the same
// address.
type processes struct {
	dir string // of the files NAME.pid with the process ids
	wg  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	running  []*process
	stopping bool

	// refused receives the status of a process that rejected its arguments, which is not restarted.
	refused chan int
}

type process struct {
	name, bin string
	args      []string
	cmd       *exec.Cmd
}

// start runs a process until the launcher ends.
func (p *processes) start(name, bin string, args ...string) error {
	_ = os.Remove(filepath.Join(p.dir, name+".ready"))
	c := &process{name: name, bin: bin, args: args}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.spawn(c); err != nil {
		return err
	}
	p.running = append(p.running, c)
	p.wg.Go(func() { p.keep(c) })
	return nil
}

func (p *processes) spawn(c *process) error {
	c.cmd = exec.Command(c.bin, c.args...)
	c.cmd.Stdout, c.cmd.Stderr = os.Stdout, os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	file := filepath.Join(p.dir, c.name+".pid")
	if err := os.WriteFile(file+".new", fmt.Append(nil, c.cmd.Process.Pid), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// pids returns the process ids by name.
func (p *processes) pids() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for _, c := range p.running {
		out[c.name] = c.cmd.Process.Pid
	}
	return out
}

// usage is the exit status of a command with invalid arguments.
const usage = 2

// restartAfter is the pause before a process is restarted.
const restartAfter = 200 * time.Millisecond

// keep restarts a process whenever it ends.
func (p *processes) keep(c *process) {
	for {
		err := c.cmd.Wait()
		if status := c.cmd.ProcessState.ExitCode(); status == usage {
			select {
			case p.refused <- status:
			default: // already reported
			}
			return
		}
		time.Sleep(restartAfter)
		p.mu.Lock()
		if p.stopping {
			p.mu.Unlock()
			return
		}
		log.Printf("spread: %s ended (%v), and is started again", c.name, err)
		if err := p.spawn(c); err != nil {
			log.Print("spread: ", err)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// stopTimeout limits the services' graceful shutdown.
const stopTimeout = 15 * time.Second

// stop ends the processes, dependent ones first.
func (p *processes) stop() {
	p.mu.Lock()
	p.stopping = true
	for i := len(p.running) - 1; i >= 0; i-- {
		_ = p.running[i].cmd.Process.Signal(syscall.SIGTERM)
	}
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() { p.wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		for _, c := range p.running {
			_ = c.cmd.Process.Kill()
		}
		<-ended
	}
}
