// Package journal records what a host acknowledged to its clients, and when. Under any fault, none
// of that may be lost, changed or done twice.
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

// Journal is the record of acknowledgements. It is safe for concurrent use.
type Journal struct {
	began time.Time
	// lost has the keys of requests whose answers were lost, to be repeated.
	lost chan string

	mu      sync.Mutex                       // guards the fields below
	runs    map[string]string                // run id → workflow
	keyed   map[string]string                // key → run id
	history map[string][]porcupine.Operation // of runs with several clients
	refused int                              // requests without an answer, or with 503
}

// New makes an empty journal.
func New() *Journal {
	return &Journal{
		began: time.Now(), lost: make(chan string, 1024),
		runs: map[string]string{}, keyed: map[string]string{}, history: map[string][]porcupine.Operation{},
	}
}

// acknowledged records a run and its idempotency key, if any.
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

// now is the current time in histories.
func (j *Journal) now() int64 { return time.Since(j.began).Nanoseconds() }

// forever is the end of an operation with unknown outcome.
const forever = int64(1) << 62

// record adds an operation on a run.
func (j *Journal) record(runID string, client int, call int64, in input, out output) {
	ret := j.now()
	if out.outcome == unknown {
		ret = forever
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.history[runID] = append(j.history[runID], porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: ret})
}

// Runs returns the acknowledged runs with their workflows.
func (j *Journal) Runs() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.runs)
}

// String returns the counts.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	ops := 0
	for _, h := range j.history {
		ops += len(h)
	}
	return fmt.Sprintf("%d acknowledged runs, %d of them keyed, %d in histories of %d operations; %d requests with unknown outcome",
		len(j.runs), len(j.keyed), len(j.history), ops, j.refused)
}
