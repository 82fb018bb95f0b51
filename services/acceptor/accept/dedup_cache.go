package accept

import (
	"bytes"
	"maps"
	"sync"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Limits of the cache of a ledger. Runs beyond them are read from the log.
const (
	maxCachedRuns = 1024
	maxCachedIDs  = 512 // per run
)

// idCache holds the correlationIds in the log of each recent run, up to a head.
// It is exact at that head and has no answer for any other head.
type idCache struct {
	mu   sync.Mutex // guards runs
	runs *lru.Cache[subject.Run, *cachedRun]
}

type cachedRun struct {
	head frame.Head
	// info is from the run's record; its Head is not kept current.
	info RunInfo
	ids  map[string]struct{}
	// stale: the log has newer frames, or may have.
	stale bool
}

// causation is in the body of every frame with an event that names its cause.
var causation = []byte(`"causationId":`)

func newIDCache(maxRuns int) *idCache {
	return &idCache{runs: lru.New[subject.Run, *cachedRun](maxRuns)}
}

// isFresh reports that no frame up to at.Head has the id. False means unknown.
func (c *idCache) isFresh(at Target, id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs.Get(at.Run)
	if !ok {
		return false
	}
	_, taken := r.ids[id]
	return r.head == at.Head && !taken && !r.stale
}

// runInfo returns what is cached about a run; current is false if the log may have
// newer frames.
func (c *idCache) runInfo(run subject.Run) (info RunInfo, current, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs.Get(run)
	if !ok {
		return RunInfo{}, false, false
	}
	info = r.info
	info.Head = r.head
	return info, !r.stale, true
}

// contains reports that the id is cached for the run.
func (c *idCache) contains(run subject.Run, id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs.Get(run)
	if !ok {
		return false
	}
	_, ok = r.ids[id]
	return ok
}

// markStale notes that the log may have frames of the run that are not cached.
func (c *idCache) markStale(run subject.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.runs.Get(run); ok {
		r.stale = true
	}
}

// delete drops a run that has ended: no append to it can succeed.
func (c *idCache) delete(run subject.Run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs.Delete(run)
}

// extend adds frames to a cached run. They must be all frames of the log after from.
func (c *idCache) extend(run subject.Run, from frame.Head, frames []*frame.Frame) error {
	more := map[string]struct{}{}
	if err := collectIDs(more, frames); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs.Get(run)
	if !ok {
		return nil
	}
	if r.head != from || len(r.ids)+len(more) > maxCachedIDs {
		c.runs.Delete(run)
		return nil
	}
	maps.Copy(r.ids, more)
	r.stale = false
	if len(frames) > 0 {
		r.head = frames[len(frames)-1].Head()
	}
	return nil
}

// collectIDs adds the causationIds of the frames' events to ids.
func collectIDs(ids map[string]struct{}, frames []*frame.Frame) error {
	for _, f := range frames {
		if !bytes.Contains(f.Body, causation) {
			continue
		}
		events, err := f.Events()
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.CausationID != "" {
				ids[e.CausationID] = struct{}{}
			}
		}
	}
	return nil
}

// put caches a run from all its frames up to at.Head. A run with too many ids is
// not cached.
func (c *idCache) put(at Target, frames []*frame.Frame) error {
	r := &cachedRun{head: at.Head, info: runInfoOf(frames), ids: map[string]struct{}{}}
	if err := collectIDs(r.ids, frames); err != nil || len(r.ids) > maxCachedIDs {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs.Put(at.Run, r, 1)
	return nil
}

// runInfoOf derives the run's info from its frames. If the record cannot be read,
// the run counts as external and untrusted, with secrets of run and tenant.
func runInfoOf(frames []*frame.Frame) RunInfo {
	info := RunInfo{Boundary: wire.Untrusted, External: true, Registration: wire.Registration{Run: true, Tenant: true}}
	if len(frames) == 0 {
		return info
	}
	info.Head = frames[len(frames)-1].Head()
	if rec, err := frames[0].Record(); err == nil {
		info.Boundary, info.External, info.Registration = rec.TrustBoundary, rec.Opened, rec.Registration()
	}
	return info
}

// advance moves a cached run from at.Head to the next head, whose frame has the id.
func (c *idCache) advance(at Target, head frame.Head, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.runs.Get(at.Run)
	if !ok {
		return
	}
	if r.head != at.Head || len(r.ids) >= maxCachedIDs {
		c.runs.Delete(at.Run)
		return
	}
	r.head, r.stale = head, false
	r.ids[id] = struct{}{}
}
