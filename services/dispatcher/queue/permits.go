package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/kv"
)

// permits manages the permits of concurrency limits. A limit of N has N numbered permits, and each
// is a key that exists while it is held. Creating the key acquires it, so at most N are held
// whatever a dispatcher assumes. A permit names its holder; once the lease of that process is over,
// any other process deletes the key.
type permits struct {
	store   kv.Store
	holders *holders
	// freed is called with the limit's id when a permit becomes free.
	freed func(id string)

	mu   sync.Mutex // guards what follows
	held map[string]map[int]permitHolder
	// own are the permits that runs of this process use or are about to acquire, by limit and
	// number, with the process id at that time.
	own    map[string]map[int]string
	lost   map[string]permitHolder
	rounds int
}

// permitHolder is the holder of a permit.
type permitHolder struct {
	RunID   string `json:"runId"`
	Process string `json:"process"`

	rev   uint64
	round int
}

// permit is a permit of this process.
type permit struct {
	id     string
	number int
	holder permitHolder
}

func (p permit) key() string { return permitKey(p.id, p.number) }

func permitKey(id string, number int) string {
	return permitPrefix + id + "." + strconv.Itoa(number)
}

func parsePermitKey(key string) (id string, number int, ok bool) {
	id, n, ok := strings.Cut(strings.TrimPrefix(key, permitPrefix), ".")
	number, err := strconv.Atoi(n)
	return id, number, ok && err == nil
}

func newPermits(store kv.Store, h *holders, returned func(string)) *permits {
	return &permits{
		store:   store,
		holders: h,
		freed:   returned,
		held:    map[string]map[int]permitHolder{},
		own:     map[string]map[int]string{},
		lost:    map[string]permitHolder{},
	}
}

// applyPermit applies a change of a permit.
func (p *permits) applyPermit(e kv.Entry) {
	id, number, ok := parsePermitKey(e.Key)
	if !ok {
		return
	}
	var h permitHolder
	if e.Value != nil {
		_ = json.Unmarshal(e.Value, &h) // an unreadable permit has no holder and is deleted
	}
	h.rev = e.Revision
	p.mu.Lock()
	was, known := p.held[id][number]
	if known && was.rev > e.Revision {
		p.mu.Unlock()
		return
	}
	h.round = p.rounds
	p.setHolder(id, number, h, e.Value != nil)
	if e.Value != nil && h.Process == p.holders.leases.Process() && !p.isUsed(id, number) { // created by a call whose answer was lost
		p.lost[e.Key] = h
	}
	p.mu.Unlock()
	if e.Value == nil {
		p.freed(id)
	}
}

// markUsed records that a run of this process uses a permit. Call it with the lock.
func (p *permits) markUsed(id string, number int, process string) {
	if p.own[id] == nil {
		p.own[id] = map[int]string{}
	}
	p.own[id][number] = process
}

// markUnused records the end of a permit's use. Call it with the lock.
func (p *permits) markUnused(id string, number int) {
	if delete(p.own[id], number); len(p.own[id]) == 0 {
		delete(p.own, id)
	}
}

// isUsed reports whether a run of this process uses a permit. Call it with the lock.
func (p *permits) isUsed(id string, number int) bool {
	_, ok := p.own[id][number]
	return ok
}

// setHolder records the holder of a permit, or that it is free. Call it with the lock.
func (p *permits) setHolder(id string, number int, h permitHolder, is bool) {
	if was, ok := p.held[id][number]; ok {
		p.holders.count(was.Process, -1)
	}
	if !is {
		if delete(p.held[id], number); len(p.held[id]) == 0 {
			delete(p.held, id)
		}
		return
	}
	if p.held[id] == nil {
		p.held[id] = map[int]permitHolder{}
	}
	p.held[id][number] = h
	p.holders.count(h.Process, 1)
}

// dropUnseen drops the permits that the last watch did not report.
func (p *permits) dropUnseen() {
	p.mu.Lock()
	var free []string
	for id, numbers := range p.held {
		for n, h := range numbers {
			if h.round < p.rounds && !p.isUsed(id, n) {
				p.setHolder(id, n, h, false)
				free = append(free, id)
			}
		}
	}
	p.mu.Unlock()
	for _, id := range free {
		p.freed(id)
	}
}

// nextRound starts a watch round: dropUnseen drops what the watch does not report.
func (p *permits) nextRound() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rounds++
}

// isUsedUp reports whether no permit is free, as far as this process knows.
func (p *permits) isUsedUp(l permitLimit) bool {
	process := p.holders.leases.Process()
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.chooseNumber(l, "", process)
	return !ok
}

// chooseNumber finds a free number, starting at a hash of the run. There is none while a run of
// this process continues under a lost lease, because its permit may have another holder. Call it
// with the lock.
func (p *permits) chooseNumber(l permitLimit, runID, process string) (number int, ok bool) {
	for _, under := range p.own[l.id] {
		if under != process {
			return 0, false
		}
	}
	numbers := p.held[l.id]
	if len(numbers) >= l.max {
		return 0, false
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(runID))
	first := int(sum.Sum32() % uint32(l.max)) //nolint:gosec // G115: max is 1 to 10,000
	for i := range l.max {
		n := (first + i) % l.max
		if _, taken := numbers[n]; !taken && !p.isUsed(l.id, n) {
			return n, true
		}
	}
	return 0, false
}

var errLimited = errors.New("limit is used up")

// acquire acquires a permit for a run that is executed under a process id. Errors: errLimited,
// kv.ErrUnavailable.
func (p *permits) acquire(ctx context.Context, l permitLimit, runID, process string) (permit, error) {
	for {
		p.mu.Lock()
		n, ok := p.chooseNumber(l, runID, process)
		if !ok {
			p.mu.Unlock()
			return permit{}, errLimited
		}
		got := permit{id: l.id, number: n, holder: permitHolder{RunID: runID, Process: process, round: p.rounds}}
		p.setHolder(l.id, n, got.holder, true) // visible to the other runs of this process
		p.markUsed(l.id, n, process)
		p.mu.Unlock()
		err := p.createKey(ctx, &got)
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, kv.ErrConflict) {
			p.abandon(got)
			return permit{}, err
		}
		if err := p.rereadHolder(ctx, got); err != nil {
			return permit{}, err
		}
	}
}

// createKey creates the permit's key.
func (p *permits) createKey(ctx context.Context, got *permit) error {
	value, err := json.Marshal(got.holder)
	if err != nil {
		return fmt.Errorf("render permit: %w", err)
	}
	rev, err := p.store.Update(ctx, got.key(), value, 0)
	if err != nil {
		return err
	}
	got.holder.rev = rev
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setHolder(got.id, got.number, got.holder, true)
	return nil
}

// rereadHolder reads the permit after a conflict.
func (p *permits) rereadHolder(ctx context.Context, got permit) error {
	e, err := p.store.Get(ctx, got.key())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.markUnused(got.id, got.number)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		p.setHolder(got.id, got.number, permitHolder{}, false)
	case errors.Is(err, kv.ErrDamaged):
		p.setHolder(got.id, got.number, permitHolder{rev: e.Revision, round: p.rounds}, true)
	case err != nil:
		p.setHolder(got.id, got.number, permitHolder{}, false)
		return err
	default:
		var h permitHolder
		_ = json.Unmarshal(e.Value, &h)
		h.rev, h.round = e.Revision, p.rounds
		p.setHolder(got.id, got.number, h, true)
	}
	return nil
}

// abandon gives up a permit whose state is unknown; releaseLost deletes it.
func (p *permits) abandon(got permit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setHolder(got.id, got.number, permitHolder{}, false)
	p.markUnused(got.id, got.number)
	p.lost[got.key()] = got.holder
}

// release releases a permit. After a failure releaseLost retries.
func (p *permits) release(ctx context.Context, got permit) {
	err := p.store.Delete(ctx, got.key(), got.holder.rev)
	p.mu.Lock()
	p.markUnused(got.id, got.number)
	if err != nil && !errors.Is(err, kv.ErrConflict) {
		p.lost[got.key()] = got.holder
		p.mu.Unlock()
		return
	}
	if p.held[got.id][got.number].rev == got.holder.rev {
		p.setHolder(got.id, got.number, permitHolder{}, false)
	}
	p.mu.Unlock()
	p.freed(got.id)
}

// deleteDead deletes the permits of dead processes. A permit that a run of this process uses under
// a lost lease is released when the run ends.
func (p *permits) deleteDead(ctx context.Context) {
	var dead []permit
	p.mu.Lock()
	for id, numbers := range p.held {
		for n, h := range numbers {
			if p.holders.isDead(h.Process) && !p.isUsed(id, n) {
				dead = append(dead, permit{id, n, h})
			}
		}
	}
	p.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(maxWrites)
	for _, d := range dead {
		g.Go(func() error {
			_ = p.store.Delete(ctx, d.key(), d.holder.rev) // the watch reports the result
			return nil
		})
	}
	_ = g.Wait()
}

// releaseLost releases the permits that this process holds and does not use.
func (p *permits) releaseLost(ctx context.Context) {
	p.mu.Lock()
	lost := p.lost
	p.lost = map[string]permitHolder{}
	p.mu.Unlock()
	for key, h := range lost {
		id, number, _ := parsePermitKey(key)
		e, err := p.store.Get(ctx, key)
		var now permitHolder
		switch {
		case errors.Is(err, kv.ErrNotFound):
			continue
		case err == nil:
			_ = json.Unmarshal(e.Value, &now)
			p.mu.Lock()
			used := p.isUsed(id, number)
			p.mu.Unlock()
			if used || now.Process != h.Process { // whatever run it names, no run of this process uses it
				continue
			}
			err = p.store.Delete(ctx, key, e.Revision)
		}
		if err != nil && !errors.Is(err, kv.ErrConflict) {
			p.mu.Lock()
			p.lost[key] = h
			p.mu.Unlock()
		}
	}
}
