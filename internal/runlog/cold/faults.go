package cold

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/protocol/subject"
)

// maxNoted limits the runs whose fault is remembered; the fault of another one is logged again.
const maxNoted = 10_000

// Faults reports sealed runs that cannot be read, or not erased as a whole, because their objects are
// damaged or lost. It is safe for concurrent use.
type Faults struct {
	logger *slog.Logger

	mu    sync.Mutex // guards noted
	noted *lru.Cache[subject.Run, struct{}]

	reads, runs, partly, unbounded atomic.Int64
}

// NewFaults returns a report that logs to logger.
func NewFaults(logger *slog.Logger) *Faults {
	return &Faults{logger: logger, noted: lru.New[subject.Run, struct{}](maxNoted)}
}

// Unreadable counts a read of a run that failed. It logs the first one of each run.
func (f *Faults) Unreadable(run subject.Run, err error) {
	f.reads.Add(1)
	key := subject.Run{Tenant: run.Tenant, RunID: run.RunID}
	f.mu.Lock()
	_, known := f.noted.Get(key)
	f.noted.Put(key, struct{}{}, 1)
	f.mu.Unlock()
	if known {
		return
	}
	f.runs.Add(1)
	f.logger.Error("a sealed run cannot be read: its object in the cold store is damaged or lost; restore the cold store from a backup",
		"tenant", run.Tenant, "run_id", run.RunID, "error", err)
}

// partial reports an erasure that leaves something of a run.
func (f *Faults) partial(run subject.Run, what string, attrs ...any) {
	f.partly.Add(1)
	f.logger.Error(what, append([]any{"tenant", run.Tenant, "run_id", run.RunID}, attrs...)...)
}

// unboundedErasure reports an erasure of a run whose frames were released.
func (f *Faults) unboundedErasure(run subject.Run) {
	f.unbounded.Add(1)
	f.logger.Warn("bytes of an erased run may stay in a file of the NATS server until more than half of that file is removed",
		"tenant", run.Tenant, "run_id", run.RunID)
}

// Warnings returns problems that an operator must solve. They name no tenant and no run.
func (f *Faults) Warnings() (out []string) {
	if n := f.runs.Load(); n > 0 {
		out = append(out, fmt.Sprintf("sealed runs that cannot be read from the cold store: %d", n))
	}
	if n := f.partly.Load(); n > 0 {
		out = append(out, fmt.Sprintf("erasures of sealed runs that may have left content: %d", n))
	}
	return out
}
