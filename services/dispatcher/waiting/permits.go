package waiting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"

	"waybill.dev/waybill/internal/kv"
)

// permits are the permits of concurrency limits. A limit of N has N numbered permits; each is a key
// that exists while it is held. Creating the key takes it, so no more than N are held whatever a
// dispatcher believes.
type permits struct {
	store   kv.Store
	holders *holders
	// returned is called with the limit's id when a permit is free again.
	returned func(id string)

	mu     sync.Mutex // guards what follows
	held   map[string]map[int]permitHolder
	own    map[string]bool // keys that this process holds or is about to take
	lost   map[string]permitHolder
	rounds int
}

// permitHolder is who holds a permit.
type permitHolder struct {
	RunID   string `json:"runId"`
	Process string `json:"process"`

	rev   uint64
	round int
}

// permit is one that this process holds.
type permit struct {
	id     string
	number int
	holder permitHolder
}

func (p permit) key() string { return permitKey(p.id, p.number) }

func permitKey(id string, number int) string {
	return permitPrefix + id + "." + strconv.Itoa(number)
}

func newPermits(store kv.Store, h *holders, returned func(string)) *permits {
	return &permits{store: store, holders: h, returned: returned, held: map[string]map[int]permitHolder{}, own: map[string]bool{}, lost: map[string]permitHolder{}}
}

// take sees what became of a permit.
func (p *permits) take(e kv.Entry) {
	id, n, ok := strings.Cut(strings.TrimPrefix(e.Key, permitPrefix), ".")
	number, err := strconv.Atoi(n)
	if !ok || err != nil {
		return
	}
	var h permitHolder
	if e.Value != nil {
		_ = json.Unmarshal(e.Value, &h) // an unreadable one is held by a process that is not there
	}
	h.rev = e.Revision
	p.mu.Lock()
	was, known := p.held[id][number]
	if known && was.rev > e.Revision {
		p.mu.Unlock()
		return
	}
	h.round = p.rounds
	p.set(id, number, h, e.Value != nil)
	if e.Value != nil && h.Process == p.holders.me && !p.own[e.Key] { // taken by a call whose answer was lost
		p.lost[e.Key] = h
	}
	p.mu.Unlock()
	if e.Value == nil {
		p.returned(id)
	}
}

// set notes a holder, or that there is none. Call it with the lock.
func (p *permits) set(id string, number int, h permitHolder, is bool) {
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
}

// sweep drops what the last watch did not see, and begins the next round.
func (p *permits) sweep() {
	p.mu.Lock()
	var free []string
	for id, numbers := range p.held {
		for n, h := range numbers {
			if h.round < p.rounds && !p.own[permitKey(id, n)] {
				p.set(id, n, h, false)
				free = append(free, id)
			}
		}
	}
	p.mu.Unlock()
	for _, id := range free {
		p.returned(id)
	}
}

// begin starts a round: what the watch that follows does not see is dropped by sweep.
func (p *permits) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rounds++
}

// full reports whether a permit is free, as far as this process knows.
func (p *permits) full(l permitLimit) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.choose(l, "")
	return !ok
}

// choose finds a number that can be taken; the run decides where the search begins. Call it with
// the lock.
func (p *permits) choose(l permitLimit, runID string) (number int, ok bool) {
	numbers, live := p.held[l.id], 0
	for _, h := range numbers {
		if p.holders.alive(h.Process) {
			live++
		}
	}
	if live >= l.max {
		return 0, false
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(runID))
	first := int(sum.Sum32() % uint32(l.max)) //nolint:gosec // G115: max is 1 to 10,000
	for i := range l.max {
		n := (first + i) % l.max
		if h, taken := numbers[n]; !taken || !p.holders.alive(h.Process) {
			return n, true
		}
	}
	return 0, false
}

var errLimited = errors.New("limit is used up")

// acquire takes a permit for a run. Errors: errLimited, kv.ErrUnavailable.
func (p *permits) acquire(ctx context.Context, l permitLimit, runID string) (permit, error) {
	for {
		p.mu.Lock()
		n, ok := p.choose(l, runID)
		if !ok {
			p.mu.Unlock()
			return permit{}, errLimited
		}
		got := permit{id: l.id, number: n, holder: permitHolder{RunID: runID, Process: p.holders.me, round: p.rounds}}
		was := p.held[l.id][n]
		got.holder.rev = was.rev
		p.set(l.id, n, got.holder, true) // for the other runs of this process
		p.own[got.key()] = true
		p.mu.Unlock()
		err := p.write(ctx, &got, was.rev)
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, kv.ErrConflict) {
			p.drop(got)
			return permit{}, err
		}
		if err := p.reread(ctx, got); err != nil {
			return permit{}, err
		}
	}
}

// write takes the permit at a revision; 0: that is free.
func (p *permits) write(ctx context.Context, got *permit, rev uint64) error {
	value, err := json.Marshal(got.holder)
	if err != nil {
		return fmt.Errorf("render permit: %w", err)
	}
	rev, err = p.store.Update(ctx, got.key(), value, rev)
	if err != nil {
		return err
	}
	got.holder.rev = rev
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(got.id, got.number, got.holder, true)
	return nil
}

// reread sees who was faster.
func (p *permits) reread(ctx context.Context, got permit) error {
	e, err := p.store.Get(ctx, got.key())
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.own, got.key())
	switch {
	case errors.Is(err, kv.ErrNotFound):
		p.set(got.id, got.number, permitHolder{}, false)
	case err != nil:
		p.set(got.id, got.number, permitHolder{}, false)
		return err
	default:
		var h permitHolder
		_ = json.Unmarshal(e.Value, &h)
		h.rev, h.round = e.Revision, p.rounds
		p.set(got.id, got.number, h, true)
	}
	return nil
}

// drop gives up a permit of which it is not known whether it is held.
func (p *permits) drop(got permit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(got.id, got.number, permitHolder{}, false)
	delete(p.own, got.key())
	p.lost[got.key()] = got.holder
}

// release gives a permit back. One that cannot be given back now is by settle.
func (p *permits) release(ctx context.Context, got permit) {
	err := p.store.Delete(ctx, got.key(), got.holder.rev)
	p.mu.Lock()
	delete(p.own, got.key())
	if err != nil && !errors.Is(err, kv.ErrConflict) {
		p.lost[got.key()] = got.holder
		p.mu.Unlock()
		return
	}
	if p.held[got.id][got.number].rev == got.holder.rev {
		p.set(got.id, got.number, permitHolder{}, false)
	}
	p.mu.Unlock()
	p.returned(got.id)
}

// settle gives back the permits that this process holds and does not use.
func (p *permits) settle(ctx context.Context) {
	p.mu.Lock()
	lost := p.lost
	p.lost = map[string]permitHolder{}
	p.mu.Unlock()
	for key, h := range lost {
		e, err := p.store.Get(ctx, key)
		var now permitHolder
		switch {
		case errors.Is(err, kv.ErrNotFound):
			continue
		case err == nil:
			_ = json.Unmarshal(e.Value, &now)
			p.mu.Lock()
			used := p.own[key]
			p.mu.Unlock()
			if used || now.Process != h.Process { // whatever run it names, no run here uses it
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
