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

// processes are those that the launcher keeps running, as an orchestrator does: who dies
// is started again, at the same address.
type processes struct {
	dir string // where each writes down its number, NAME.pid
	wg  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	running  []*process
	stopping bool

	// refused has the status of a process that could not use its arguments: nobody starts
	// it again.
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

// pids are the numbers of the processes by name.
func (p *processes) pids() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for _, c := range p.running {
		out[c.name] = c.cmd.Process.Pid
	}
	return out
}

// usage is the status of the host's commands that cannot use their arguments.
const usage = 2

// restartAfter is the pause before a process is started again.
const restartAfter = 200 * time.Millisecond

// keep starts a process again whenever it has ended.
func (p *processes) keep(c *process) {
	for {
		err := c.cmd.Wait()
		if status := c.cmd.ProcessState.ExitCode(); status == usage {
			select {
			case p.refused <- status:
			default: // another has told
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

// stopTimeout is how long the services may take to end what they have begun.
const stopTimeout = 15 * time.Second

// stop ends the processes, those first that need others.
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
