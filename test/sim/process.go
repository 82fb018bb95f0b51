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
	"waybill.dev/waybill/services/dispatcher/lease"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// leaseTime is how long a silent dispatcher keeps its runs.
const leaseTime = 3 * time.Second

// maxDuration is how long a run may take that sets no limit itself.
const maxDuration = 20 * time.Minute

// process is a dispatcher or an acceptor. When it is killed its calls fail from
// then on, and another one takes its slot, knowing nothing of it.
type process struct {
	w    *World
	slot int
	name string // with which of its lives it is
	life int

	ctx    context.Context //nolint:containedctx // ends when the process is killed
	cancel context.CancelFunc

	ahead  atomic.Int64 // nanoseconds that its clock is ahead of the right time
	dead   bool         // guarded by the world's mu
	frozen time.Time    // its calls are held up until then; the scheduler's
	// known is how far into each run's log its sessions have seen; the scheduler's.
	known map[string][]sight

	// incarnations counts the leases that it has held, and id is that of the last; guarded by the
	// world's mu.
	incarnations int
	id           string
	leases       kv.Store
	draining     bool // the scheduler's

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
	cfg, tools := dispatcher.DefaultConfig(), tool.Runners(nil)
	providers, err := provider.NewRegistry(modelPort{p})
	if p.w.scenario.Story != nil {
		providers, err = provider.NewRegistry(modelPort{p}, scriptedPort{p}, sample.New(0))
		tools = tool.Runners{node.TypeMCPCallTool: toolPort{p}}
		cfg.TestSeams, cfg.Prompts.TestSecrets = true, map[string]string{SecretID: canary}
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
	cfg.Completion.Timeout = time.Hour        // models time out by themselves: two that began at once would do so at once, in any order
	if p.leases = p.w.records; p.w.unleased { // no other process sees it
		p.leases = kvmemory.New()
	}
	deps := dispatcher.Deps{
		Log: logPort{p}, Queue: &queuePort{p: p, want: 1}, Workflows: recordsPort{p.w.records, p}, Claims: recordsPort{p.w.records, p}, Quarantine: recordsPort{p.w.records, p},
		Leases: recordsPort{p.leases, p}, Peers: peersPort{p},
		Acceptor: acceptorPort{p: p}, Redactor: redactorPort{p: p}, EventLog: timersPort{p: p},
		Providers: providers, Tools: tools, Clock: p.now, Logger: p.logger(),
	}
	if err := p.giveDesk(&deps); err != nil {
		return err
	}
	if p.dispatcher, err = dispatcher.New(cfg, deps); err != nil {
		return err
	}
	p.w.wg.Go(func() { _ = p.dispatcher.Run(p.ctx) })
	return nil
}

func (p *process) logger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// newID names the process for its lease: again when it lost one.
func (p *process) newID() string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.incarnations++
	p.id = fmt.Sprintf("%s-%d", strings.ReplaceAll(p.name, ".", "-"), p.incarnations)
	return p.id
}

// now is what the process's clock shows.
func (p *process) now() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }

// accepts makes the process an acceptor when one is asked for: that takes long, and
// many worlds need none.
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

// registrar takes the handlers of the service off the hands of a server that is
// not there.
type registrar struct{ p *process }

func (r registrar) RegisterService(_ *grpc.ServiceDesc, impl any) {
	if s, ok := impl.(acceptorv1.AcceptorServer); ok {
		r.p.acceptor = s
	}
}

// acceptorNow is the acceptor that is alive.
func (w *World) acceptorNow() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.procs[w.scenario.Dispatchers]
}

// dispatcherAt is the dispatcher of a slot that is alive.
func (w *World) dispatcherAt(slot int) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.procs[slot%w.scenario.Dispatchers]
}

// end kills a process for good. What it had sent may still arrive.
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
	next.frozen = time.Now().Add(w.rise(p)) // it takes a while to come up
	w.mu.Lock()
	w.procs[p.slot] = next
	w.mu.Unlock()
}
