package jetstream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// A server that syncs writes does so for every message, one after the other. A batch it
// syncs as one, but to set one up takes as long as to write a dozen alone; where nothing
// is synced, it takes far longer than all of them. So appends go alone while few are on
// their way, and those that have to wait go as one when that is the sooner, by what was
// measured of late: the more there are, the more share a sync.
const (
	// maxAlone bounds the appends that are on their way, each for itself, but for large
	// ones and those of a batch that was not taken.
	maxAlone = 8
	// window is how many appends tell how fast the server takes those that go alone.
	window = 2 * maxAlone
	// maxBatch and maxBatchBytes bound a batch; the server takes 1,000 messages.
	maxBatch      = 256
	maxBatchBytes = 4 << 20
	// maxGrouped is the largest message that may go with others, who would have to be
	// sent anew if it were refused for its size.
	maxGrouped = 32 << 10
	// firstCost is what a batch is thought to take before there was one, maxCost what it
	// is thought to take at most: a server may have been slow for other reasons.
	firstCost, maxCost = 5 * time.Millisecond, 10 * time.Millisecond
)

// group sends appends, alone or many as one. It is safe for concurrent use.
type group struct {
	to carrier
	// together says that appends may share a sync.
	together bool

	mu      sync.Mutex // guards what follows
	alone   int        // how many are on their way, each for itself
	batch   bool       // a batch is on its way
	waiting []*ticket
	pace    pace
	// cost is how long a batch takes; 0: there was none.
	cost time.Duration
}

// entry is one append.
type entry struct {
	// msg is never changed: a caller who has given up may send it anew while it is still
	// on its way in a batch.
	msg *nats.Msg
	// run tells the runs apart.
	run string
}

// ticket is an append that waits. Each try has its own: what is told of an earlier one is
// of no use to the next.
type ticket struct {
	entry
	// told gets one outcome; it never blocks who tells it.
	told chan outcome
}

// outcome of an append. goAlone says that it was not sent and may be.
type outcome struct {
	pos     uint64
	err     error
	goAlone bool
}

// errBatch says that a batch was not taken: nothing of it was stored.
var errBatch = errors.New("the batch was not taken")

// carrier brings messages to the server.
type carrier interface {
	// one gives the position of a message that was sent for itself.
	one(ctx context.Context, e entry) (uint64, error)
	// many gives the position of the last of a batch; they follow each other. An
	// errBatch says that none was stored.
	many(batch []*ticket) (uint64, error)
}

// publish sends one message and gives its position.
func (g *group) publish(ctx context.Context, e entry) (uint64, error) {
	if !g.together || e.msg.Size() > maxGrouped {
		return g.to.one(ctx, e)
	}
	if t := g.enter(e); t != nil {
		select {
		case o := <-t.told:
			switch {
			case errors.Is(o.err, errBatch):
				// Most likely another's expectation has failed, or ours.
				return g.to.one(ctx, e)
			case !o.goAlone:
				return o.pos, o.err
			}
		case <-ctx.Done():
			g.leave(t)
			return 0, ctx.Err()
		}
	}
	defer g.exit()
	return g.to.one(ctx, e)
}

// enter gives nil when the append may go alone, now; else it waits with a ticket.
func (g *group) enter(e entry) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.batch && g.alone < maxAlone && len(g.waiting) == 0 {
		g.alone++
		return nil
	}
	t := &ticket{entry: e, told: make(chan outcome, 1)}
	g.waiting = append(g.waiting, t)
	g.advance()
	return t
}

// leave takes back an append whose caller has gone. One that was let go alone at that
// moment gives its place to the next.
func (g *group) leave(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, t); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return
	}
	select {
	case o := <-t.told:
		if o.goAlone {
			g.alone--
			g.advance()
		}
	default: // in a batch; whether it is stored is not known
	}
}

// exit makes room for another.
func (g *group) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone--
	g.pace.ended(len(g.waiting) > 0)
	g.advance()
}

// advance sends what waits as far as it may go. The lock is held.
func (g *group) advance() {
	if g.batch {
		return
	}
	if g.sooner(len(g.waiting)) {
		if b := g.take(); g.sooner(len(b)) {
			g.batch = true
			go g.commit(b)
			return
		}
	}
	for g.alone < maxAlone && len(g.waiting) > 0 {
		g.alone++
		g.waiting[0].told <- outcome{goAlone: true}
		g.waiting = slices.Delete(g.waiting, 0, 1)
	}
}

// sooner reports whether n appends are stored sooner as one than each for itself.
func (g *group) sooner(n int) bool {
	return n > 1 && time.Duration(n)*g.pace.each > cmp.Or(g.cost, firstCost)
}

// take takes a batch from those that wait. Of one run it takes no more than one: within
// a batch the server does not hold the second against the first.
func (g *group) take() []*ticket {
	var (
		batch []*ticket
		rest  []*ticket
		runs  = make(map[string]bool, len(g.waiting))
		bytes int
	)
	for _, t := range g.waiting {
		if runs[t.run] || len(batch) == maxBatch || bytes+t.msg.Size() > maxBatchBytes {
			rest = append(rest, t)
			continue
		}
		runs[t.run] = true
		bytes += t.msg.Size()
		batch = append(batch, t)
	}
	if g.sooner(len(batch)) {
		g.waiting = rest
	}
	return batch
}

// commit sends a batch and tells each of it.
func (g *group) commit(batch []*ticket) {
	began := time.Now()
	last, err := g.to.many(batch)
	took := time.Since(began)
	pos := last - uint64(len(batch)) // that before the first
	for _, t := range batch {
		pos++
		t.told <- outcome{pos: pos, err: err}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batch = false
	g.cost = min((3*cmp.Or(g.cost, firstCost)+took)/4, maxCost)
	g.pace.fade()
	g.advance()
}

// pace measures how fast appends end that go alone.
type pace struct {
	each time.Duration // from one to the next; 0: not known
	// n have ended since began, while others waited all the time.
	n     int
	began time.Time
}

// ended counts one that has ended; what is not crowded tells nothing.
func (p *pace) ended(crowded bool) {
	now := time.Now()
	switch {
	case !crowded:
		p.n = 0
		return
	case p.n == 0:
		p.began = now
	case p.n == window:
		p.each = now.Sub(p.began) / window
		p.n, p.began = 0, now
	}
	p.n++
}

// fade forgets slowly, so that it is measured anew from time to time.
func (p *pace) fade() {
	p.each -= p.each / 64
	p.n = 0
}
