package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
	"waybill.dev/waybill/services/dispatcher/seam"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// leaseTime is how long a silent dispatcher keeps its runs.
const leaseTime = 3 * time.Second

// maxDuration is the time limit of runs without their own.
const maxDuration = 20 * time.Minute

// process is a dispatcher or an acceptor. Once killed, its calls fail, and a new process takes its
// slot without its state.
type process struct {
	w    *World
	slot int
	name string // includes the number of the life in its slot
	life int

	ctx    context.Context //nolint:containedctx // ends when the process is killed
	cancel context.CancelFunc

	ahead  atomic.Int64 // nanoseconds that its clock is ahead of the true time
	dead   bool         // guarded by the world's mu
	frozen time.Time    // its calls are delayed until then; owned by the scheduler
	// known is how far its sessions have read each run's log; owned by the scheduler.
	known map[string][]sight

	// incarnations counts the leases that it has held, and id is the last one; guarded by the
	// world's mu.
	incarnations int
	id           string
	leases       kv.Store
	draining     bool // owned by the scheduler

	dispatcher *dispatcher.Service
	acceptor   acceptorv1.AcceptorServer // see accepts
	accepting  sync.Once
}

// boot starts the process of a slot.
func (w *World) boot(slot, life int) *process {
	p := &process{w: w, slot: slot, life: life, name: fmt.Sprintf("d%d.%d", slot, life), known: map[string][]sight{}}
	p.ctx, p.cancel = context.WithCancel(w.background())
	var err error
	if slot == w.scenario.Dispatchers {
		p.name = fmt.Sprintf("a.%d", life)
	} else {
		err = p.becomeDispatcher()
	}
	if err != nil {
		w.violate(fmt.Errorf("boot %s: %w", p.name, err))
	}
	return p
}

func (p *process) becomeDispatcher() error {
	cfg := dispatcher.DefaultConfig()
	var (
		tools tool.Runners
		seams *seam.Seams
	)
	providers, err := provider.NewRegistry(modelPort{p})
	if p.w.scenario.Story != nil {
		providers, err = provider.NewRegistry(modelPort{p}, scriptedPort{p}, sample.New(0))
		tools = tool.Runners{node.TypeMCPCallTool: toolPort{p}}
		seams = &seam.Seams{Secrets: map[string]string{SecretID: canary}}
	}
	if err != nil {
		return err
	}
	cfg.Limits.MaxNodeExecutions, cfg.MaxRuns = 1000, p.w.slots
	cfg.AckWait = p.w.ackWait
	cfg.Lease = lease.Config{Duration: p.w.leaseOf(p.slot), NewID: p.newID}
	if !p.w.together {
		cfg.MaxBatch = 1
	}
	cfg.Limits.MaxDuration = maxDuration
	if p.w.scenario.Story == nil {
		cfg.Completion.Defaults.Provider, cfg.Completion.Defaults.Model = providerID, "model-1"
	}
	cfg.Completion.Timeout = time.Hour        // models time out in the simulation: two real timeouts would fire together, in any order
	if p.leases = p.w.records; p.w.unleased { // a store that no other process sees
		p.leases = kvmemory.New()
	}
	deps := dispatcher.Deps{
		Storage: dispatcher.Storage{
			Log:        logPort{p},
			Workflows:  recordsPort{p.w.records, p},
			Claims:     recordsPort{p.w.records, p},
			Quarantine: recordsPort{p.w.records, p},
			Leases:     recordsPort{p.leases, p},
		},
		Queueing: dispatcher.Queueing{Queue: &queuePort{p: p, want: 1}},
		Services: dispatcher.Services{
			Peers:    peersPort{p},
			Acceptor: acceptorPort{p: p},
			Redactor: redactorPort{p: p},
			EventLog: timersPort{p: p},
		},
		Calls:  dispatcher.Calls{Providers: providers, Tools: tools},
		Seams:  seams,
		Clock:  p.now,
		Logger: p.logger(),
	}
	if err := p.setUpDesk(&deps); err != nil {
		return err
	}
	if p.dispatcher, err = dispatcher.New(cfg, deps); err != nil {
		return err
	}
	p.w.wg.Go(func() { _ = p.dispatcher.Run(p.ctx) })
	return nil
}

func (p *process) logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newID returns a new process id for its lease, for each lease.
func (p *process) newID() string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.incarnations++
	p.id = fmt.Sprintf("%s-%d", strings.ReplaceAll(p.name, ".", "-"), p.incarnations)
	return p.id
}

// now returns the process's clock.
func (p *process) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

// accepts creates the acceptor on its first use. That is slow, and many worlds need none.
func (p *process) accepts() acceptorv1.AcceptorServer {
	p.accepting.Do(func() {
		if err := p.becomeAcceptor(); err != nil {
			panic("sim: acceptor: " + err.Error())
		}
	})
	return p.acceptor
}

func (p *process) becomeAcceptor() error {
	cfg := acceptor.DefaultConfig()
	cfg.KindsDir = kindsDir
	s, err := acceptor.New(cfg, acceptor.Deps{Log: logPort{p}, Redactor: redactorPort{p: p}, Clock: p.now})
	if err != nil {
		return err
	}
	s.Register(registrar{p})
	return nil
}

// registrar captures the service's handlers in place of a gRPC server.
type registrar struct{ p *process }

func (r registrar) RegisterService(_ *grpc.ServiceDesc, impl any) {
	if s, ok := impl.(acceptorv1.AcceptorServer); ok {
		r.p.acceptor = s
	}
}

// acceptorNow returns the live acceptor.
func (w *World) acceptorNow() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.procs[w.scenario.Dispatchers]
}

// dispatcherAt returns the live dispatcher of a slot.
func (w *World) dispatcherAt(slot int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.procs[slot%w.scenario.Dispatchers]
}

// end kills a process. Calls already sent may still arrive.
func (w *World) end(p *process) {
	w.mu.Lock()
	p.dead = true
	w.mu.Unlock()
	p.cancel()
}

// kill ends a process and starts the next one in its slot.
func (w *World) kill(p *process) {
	if p.gone() {
		return
	}
	w.end(p)
	next := w.boot(p.slot, p.life+1)
	next.frozen = time.Now().Add(w.rise(p)) // start-up takes a while
	w.mu.Lock()
	w.procs[p.slot] = next
	w.mu.Unlock()
}
