package accept

import (
	"bytes"
	"container/list"
	"maps"
	"sync"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Bounds of what a ledger remembers. Beyond them it reads the log.
const (
	maxRunsSeen = 1024
	maxIDsSeen  = 512 // per run
)

// seen remembers which correlationIds the log of a run holds up to a head. It
// is exact there and says nothing about any other head.
type seen struct {
	mu    sync.Mutex // guards runs and order
	limit int
	runs  map[subject.Run]*list.Element
	order *list.List // of *seenRun, most recently used first
}

type seenRun struct {
	run  subject.Run
	head frame.Head
	// began is what the run's record says; its head is not kept up to date.
	began Standing
	ids   map[string]struct{}
	// stale: the log has got more since, or may have.
	stale bool
}

// causation is in the body of every frame with an event that names its cause.
var causation = []byte(`"causationId":`)

func newSeen(limit int) *seen {
	return &seen{limit: limit, runs: map[subject.Run]*list.Element{}, order: list.New()}
}

// fresh reports that no frame up to at.Head has the id. False means: not known.
func (s *seen) fresh(at Place, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[at.Run]
	if e == nil {
		return false
	}
	r := e.Value.(*seenRun)
	_, taken := r.ids[id]
	return r.head == at.Head && !taken && !r.stale
}

// standing is that of a remembered run; current is false if the log may have got
// more since.
func (s *seen) standing(run subject.Run) (known Standing, current, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run]
	if e == nil {
		return Standing{}, false, false
	}
	r := e.Value.(*seenRun)
	known = r.began
	known.Head = r.head
	return known, !r.stale, true
}

// has reports that the id is among those remembered.
func (s *seen) has(run subject.Run, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run]
	if e == nil {
		return false
	}
	_, ok := e.Value.(*seenRun).ids[id]
	return ok
}

// outdate says that the log may have got more than is remembered of the run.
func (s *seen) outdate(run subject.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.runs[run]; e != nil {
		e.Value.(*seenRun).stale = true
	}
}

// forget drops a run that has ended: nothing of it will be fresh any more.
func (s *seen) forget(run subject.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.runs[run]; e != nil {
		s.drop(e)
	}
}

// extend takes in the frames that follow a remembered head, which are all there
// are.
func (s *seen) extend(run subject.Run, from frame.Head, frames []*frame.Frame) error {
	more := map[string]struct{}{}
	if err := collect(more, frames); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[run]
	if e == nil {
		return nil
	}
	r := e.Value.(*seenRun)
	if r.head != from || len(r.ids)+len(more) > maxIDsSeen {
		s.drop(e)
		return nil
	}
	maps.Copy(r.ids, more)
	r.stale = false
	if len(frames) > 0 {
		r.head = frames[len(frames)-1].Head()
	}
	s.order.MoveToFront(e)
	return nil
}

// collect adds the causes of the frames' events to ids.
func collect(ids map[string]struct{}, frames []*frame.Frame) error {
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

// remember takes in all frames of a run up to a head.
func (s *seen) remember(at Place, frames []*frame.Frame) error {
	r := &seenRun{run: at.Run, head: at.Head, began: standingOf(frames), ids: map[string]struct{}{}}
	if err := collect(r.ids, frames); err != nil || len(r.ids) > maxIDsSeen {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(r)
	return nil
}

// standingOf is how a run of these frames stands. One whose record cannot be read
// vouches for nothing.
func standingOf(frames []*frame.Frame) Standing {
	s := Standing{Boundary: wire.Untrusted, Opened: true, Registration: wire.Registration{Run: true, Tenant: true}}
	if len(frames) == 0 {
		return s
	}
	s.Head = frames[len(frames)-1].Head()
	if rec, err := frames[0].Record(); err == nil {
		s.Boundary, s.Opened, s.Registration = rec.TrustBoundary, rec.Opened, rec.Registration()
	}
	return s
}

// append moves a remembered run on by one frame.
func (s *seen) append(at Place, head frame.Head, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.runs[at.Run]
	if e == nil {
		return
	}
	r := e.Value.(*seenRun)
	if r.head != at.Head || len(r.ids) >= maxIDsSeen {
		s.drop(e)
		return
	}
	r.head, r.stale = head, false
	r.ids[id] = struct{}{}
	s.order.MoveToFront(e)
}

// put stores r as the most recent run. s.mu is held.
func (s *seen) put(r *seenRun) {
	if e := s.runs[r.run]; e != nil {
		s.drop(e)
	}
	s.runs[r.run] = s.order.PushFront(r)
	for s.order.Len() > s.limit {
		s.drop(s.order.Back())
	}
}

// drop removes an element. s.mu is held.
func (s *seen) drop(e *list.Element) {
	s.order.Remove(e)
	delete(s.runs, e.Value.(*seenRun).run)
}
