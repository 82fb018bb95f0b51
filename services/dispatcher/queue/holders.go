package queue

import (
	"context"
	"sync"
)

// Leases is the liveness of dispatcher processes; see package lease.
type Leases interface {
	// Process is the id of this process. It changes when the lease is lost.
	Process() string
	// Alive reports whether a process may still act. False is final.
	Alive(ctx context.Context, process string) (bool, error)
}

// holders are the processes named in tickets and permits, with the state of their leases.
type holders struct {
	leases Leases

	mu    sync.Mutex      // guards what follows
	named map[string]int  // number of tickets and permits per process
	dead  map[string]bool // processes whose lease is over
}

func newHolders(l Leases) *holders {
	return &holders{leases: l, named: map[string]int{}, dead: map[string]bool{}}
}

// count adds n to the tickets and permits of a process; an empty process is ignored.
func (h *holders) count(process string, n int) {
	if process == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.named[process] += n; h.named[process] <= 0 {
		delete(h.named, process)
		delete(h.dead, process)
	}
}

// isDead reports that findDead found the lease of a process to be over. The empty id is dead.
func (h *holders) isDead(process string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return process == "" || h.dead[process]
}

// findDead checks the leases of the named processes, and returns those newly found to be over. A
// lease that cannot be read is not over.
func (h *holders) findDead(ctx context.Context) (died []string) {
	for _, process := range h.possiblyAlive() {
		if alive, err := h.leases.Alive(ctx, process); err != nil || alive {
			continue
		}
		h.mu.Lock()
		if h.named[process] > 0 {
			h.dead[process] = true
			died = append(died, process)
		}
		h.mu.Unlock()
	}
	return died
}

// possiblyAlive are the named processes not known to be dead.
func (h *holders) possiblyAlive() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for process := range h.named {
		if !h.dead[process] {
			out = append(out, process)
		}
	}
	return out
}
