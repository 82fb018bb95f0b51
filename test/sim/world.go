package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
)

// World is one simulation. Its scheduler, the goroutine of Run, owns all fields except those
// guarded by mu. Processes interact with it only by calls.
type World struct {
	scenario Scenario
	together bool
	chance   *rand.Rand
	began    time.Time
	// calm is the time of the last fault; zero while faults continue.
	calm  time.Time
	fates int

	log      runlog.Log
	queue    *queue
	records  kv.Store
	models   *models
	runs     map[string]*history
	procs    []*process // by slot; the acceptor is the last
	clients  int        // clients with remaining steps
	promises promises
	calls    []Call // calls of a story

	// slots is the number of runs a dispatcher executes concurrently, prefetch how many it fetches
	// regardless. unleased lets every dispatcher execute what it receives.
	slots, prefetch int
	ackWait         time.Duration
	unleased        bool
	// peers answer the requests of other dispatchers, by process id; guarded by mu.
	peers map[string]func([]byte) []byte
	// underWay are the model calls in progress, by run, node and attempt; guarded by mu.
	underWay map[string]calling

	// desk is Options.Desk, tickets the desks' store.
	desk    string
	tickets kv.Store

	steps  int
	sum    uint64 // hash of all events
	trace  *strings.Builder
	broken error // the first broken rule

	over chan struct{} // closed at the end of the simulation

	mu      sync.Mutex // guards pending and the shared fields of processes and calls
	pending []*call
	news    chan struct{} // capacity 1: a call was registered

	wg sync.WaitGroup // all goroutines of the world
}

const (
	// maxSteps limits the calls of a simulation; normal ones stay far below.
	maxSteps = 60_000
	// patience is the time limit after the last fault. A run without an owner is found when it
	// times out.
	patience = maxDuration + 5*time.Minute
)

// Run simulates a scenario. Call it in a testing/synctest bubble.
func Run(s Scenario, o Options) Verdict {
	w := newWorld(s, o)
	w.start()
	w.loop()
	w.finish()
	if w.broken == nil && s.Story == nil {
		w.broken = w.replay()
	}
	return w.verdict()
}

func newWorld(s Scenario, o Options) *World {
	w := &World{
		scenario: s, together: o.Together, chance: rand.New(rand.NewPCG(s.Seed, 0x5eed)), began: time.Now(),
		log: memory.New(), records: kvmemory.New(), runs: map[string]*history{}, news: make(chan struct{}, 1), over: make(chan struct{}),
	}
	w.slots, w.prefetch, w.ackWait, w.unleased, w.peers = max(s.Slots, 1), o.Prefetch, cmp.Or(o.AckWait, runlog.AckWait), o.Unleased, map[string]func([]byte) []byte{}
	w.underWay, w.desk, w.tickets = map[string]calling{}, o.Desk, kvmemory.New()
	if o.Log != nil {
		w.log = o.Log()
	}
	if o.Traced {
		w.trace = &strings.Builder{}
	}
	w.queue = newQueue(w)
	w.models = newModels(w)
	w.promises = newPromises()
	return w
}

func (w *World) start() {
	if err := w.define(); err != nil {
		w.violate(err)
		return
	}
	for slot := range w.scenario.Dispatchers + 1 {
		// Times in logs are whole milliseconds. Tickers started at a whole millisecond would
		// coincide with timers, in random order.
		w.pass(time.Duration(1+w.chance.Int64N(int64(time.Millisecond))) | 1)
		p := w.boot(slot, 0)
		w.mu.Lock()
		w.procs = append(w.procs, p)
		w.mu.Unlock()
	}
	if w.scenario.Story != nil {
		w.clients++
		w.wg.Go(w.newStoryRunner().run)
	}
	for i := range w.scenario.Clients {
		w.clients++
		c := &client{w: w, name: fmt.Sprintf("c%d", i), steps: w.scenario.Clients[i]}
		w.wg.Go(c.run)
	}
	if w.scenario.does("pause") {
		j := &client{w: w, name: "janitor"}
		w.wg.Go(j.tidy)
	}
}

// loop serves one call at a time, each when its latency has passed, and advances the clock to it.
func (w *World) loop() {
	for w.broken == nil {
		synctest.Wait()
		next, due := w.next()
		if next == nil && w.settled() {
			return
		}
		if now := time.Now(); due.After(now) {
			w.sleep(due.Sub(now))
		} else {
			w.steps++
			w.serve(next)
		}
		w.bound()
	}
}

// sleep lets time pass until a process makes a call.
func (w *World) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.news:
	}
}

// pass lets time pass, whatever happens.
func (w *World) pass(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// idle is how far the clock may jump while there are no calls.
const idle = time.Minute

// next returns the next call to serve, and when. New calls get their latencies in the order of
// their keys, which does not depend on goroutine scheduling.
func (w *World) next() (next *call, due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.news: // the new calls are handled here
	default:
	}
	w.pending = slices.DeleteFunc(w.pending, func(c *call) bool {
		return (c.gone || c.from.dead) && !boundaries[c.at].lingers
	})
	var fresh []*call
	for _, c := range w.pending {
		if !c.admitted {
			fresh = append(fresh, c)
		}
	}
	slices.SortStableFunc(fresh, func(a, b *call) int { return strings.Compare(a.key(), b.key()) })
	for i, c := range fresh {
		c.admitted = true
		if i > 0 && fresh[i-1].key() == c.key() {
			c.latency, c.due = fresh[i-1].latency, fresh[i-1].due
			continue
		}
		c.latency = w.latency(c)
		c.due = time.Now().Add(c.latency)
	}
	due = time.Now().Add(idle)
	for _, c := range w.pending {
		if at := w.dueOf(c); at.Before(due) || next != nil && at.Equal(due) && c.key() < next.key() {
			next, due = c, at
		}
	}
	return next, due
}

func (w *World) dueOf(c *call) time.Time {
	due := c.due
	if c.ready != nil {
		due = later(due, c.ready().Add(c.latency))
	}
	if !c.gone { // a call already sent is in flight
		due = later(due, c.from.frozen.Add(c.latency))
	}
	return due
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// latency is mostly short, and sometimes long enough to be mistaken for a loss.
func (w *World) latency(c *call) time.Duration {
	f := w.scenario.Faults
	d := time.Duration(20_000 + w.chance.Int64N(int64(2*time.Millisecond)))
	if w.faulty() && w.chance.Float64() < f.Slow && c.at != atNext {
		d += time.Duration(w.chance.Int64N(int64(3 * leaseTime)))
	}
	return d
}

// serve carries a call out with a random fate. Its twins share the fate.
func (w *World) serve(c *call) {
	twins := w.twinsOf(c)
	f := w.fateOf(c)
	w.note(c, f)
	w.listed(c)
	if f == Freeze {
		w.mu.Lock()
		c.from.frozen = time.Now().Add(leaseTime/2 + time.Duration(w.chance.Int64N(int64(3*leaseTime))))
		w.mu.Unlock()
		return
	}
	for _, t := range twins {
		w.remove(t)
	}
	if f == CrashBefore {
		w.kill(c.from)
		return
	}
	errs := make([]error, len(twins))
	for i, t := range twins {
		if f != Fail && t.perform != nil {
			errs[i] = t.perform()
		}
		if f == Fail || f == Lose {
			errs[i] = errFault
		}
	}
	if f == CrashAfter {
		w.kill(c.from)
		return
	}
	for i, t := range twins {
		t.reply <- errs[i]
	}
}

// twinsOf returns a call with its twins: calls of one process with the same key that were
// registered at the same instant. Which of them belongs to which run depends on the scheduling of
// goroutines, so they are served together.
func (w *World) twinsOf(c *call) (twins []*call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pending {
		if p == c || p.from == c.from && p.key() == c.key() && p.due.Equal(c.due) {
			twins = append(twins, p)
		}
	}
	return twins
}

func (w *World) remove(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = slices.DeleteFunc(w.pending, func(p *call) bool { return p == c })
}

// settled reports whether nothing is left to do: every client has finished, every run has ended,
// and the queue is empty.
func (w *World) settled() bool {
	if w.clients > 0 || !w.queue.empty() {
		return false
	}
	for _, h := range w.runs {
		if !h.state.Status.Terminal() {
			return false
		}
	}
	return w.desk == "" || len(w.deskKeys()) == 0
}

// bound ends a simulation that makes no progress.
func (w *World) bound() {
	if w.faulty() || w.calm.IsZero() {
		return
	}
	if w.steps > maxSteps || time.Since(w.calm) > patience {
		w.violate(fmt.Errorf("liveness: %s after the last fault: %s", time.Since(w.calm), w.left()))
	}
}

// left describes what the simulation still waits for.
func (w *World) left() string {
	var open []string
	for _, id := range w.runIDs() {
		if h := w.runs[id]; !h.state.Status.Terminal() {
			open = append(open, fmt.Sprintf("run %s is %s", id, h.state.Status))
		}
	}
	return fmt.Sprintf("%d clients busy, %s, queue: %s, desk: %s", w.clients, strings.Join(open, ", "), w.queue, w.deskKeys())
}

// finish ends all processes and checks the promises.
func (w *World) finish() {
	for _, p := range w.procs {
		w.end(p)
	}
	close(w.over)
	w.wg.Wait()
	if w.broken == nil {
		w.broken = w.atEnd()
	}
}

// violate records the first broken rule.
func (w *World) violate(err error) {
	if w.broken == nil {
		w.broken = err
	}
}

// background is the context of the world's own actions.
func (w *World) background() context.Context { return context.Background() }
