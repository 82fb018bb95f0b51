// Package journal keeps what only an outsider of a host knows: what it acknowledged to its
// clients, and when. Whatever breaks meanwhile, nothing of that may be lost, changed or done
// twice.
package journal

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Key is the credential of all clients.
const Key = "dev-key"

// Journal is what was acknowledged. It is safe for concurrent use.
type Journal struct {
	began time.Time
	// lost are keys of requests whose answers were lost, for whoever repeats them.
	lost chan string

	mu      sync.Mutex                       // guards what follows
	runs    map[string]string                // run id → workflow
	keyed   map[string]string                // key → run id
	history map[string][]porcupine.Operation // of runs that several clients act upon
	refused int                              // requests that got no answer, or 503
}

// New makes an empty journal.
func New() *Journal {
	return &Journal{
		began: time.Now(), lost: make(chan string, 1024),
		runs: map[string]string{}, keyed: map[string]string{}, history: map[string][]porcupine.Operation{},
	}
}

// acknowledged notes a run, and the key that stands for it if there is one.
func (j *Journal) acknowledged(t testing.TB, key, workflow, runID string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[runID] = workflow
	if key == "" {
		return
	}
	if was, ok := j.keyed[key]; ok && was != runID {
		t.Errorf("key %s stood for run %s and now stands for %s", key, was, runID)
	}
	j.keyed[key] = runID
}

// now is an instant as histories have it.
func (j *Journal) now() int64 { return time.Since(j.began).Nanoseconds() }

// forever is when an operation ended of which nobody knows.
const forever = int64(1) << 62

// record notes an operation on a run.
func (j *Journal) record(runID string, client int, call int64, in input, out output) {
	ret := j.now()
	if out.outcome == unknown {
		ret = forever
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.history[runID] = append(j.history[runID], porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: ret})
}

// Runs are the acknowledged runs with their workflows.
func (j *Journal) Runs() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.runs)
}

// String counts what there is.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	ops := 0
	for _, h := range j.history {
		ops += len(h)
	}
	return fmt.Sprintf("%d acknowledged runs, %d of them keyed, %d in histories of %d operations; %d requests without effect that is known",
		len(j.runs), len(j.keyed), len(j.history), ops, j.refused)
}
