package webhook

import "sync"

// laneLimit limits the lanes of each subscription. It knows the lanes of the store, and those that this
// process is about to create. It is safe for concurrent use.
type laneLimit struct {
	most int
	// ready is closed when the lanes of the store are known.
	ready chan struct{}

	mu sync.Mutex // guards lanes
	// lanes has true for lanes of the store, false for those that are reserved.
	lanes map[hookID]map[laneID]bool
}

func newLaneLimit(most int) *laneLimit {
	return &laneLimit{most: most, ready: make(chan struct{}), lanes: map[hookID]map[laneID]bool{}}
}

// reserve admits a lane that is about to be created. It returns false if the subscription has as many as
// it may have. A lane that exists is always admitted.
func (l *laneLimit) reserve(id laneID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.lanes[hookOf(id)]
	if _, known := of[id]; known {
		return true
	}
	if len(of) >= l.most {
		return false
	}
	l.put(id, false)
	return true
}

// withdraw takes a reservation back. A lane that the store has by now stays.
func (l *laneLimit) withdraw(id laneID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stored, known := l.lanes[hookOf(id)][id]; known && !stored {
		l.remove(id)
	}
}

// created records a lane of the store.
func (l *laneLimit) created(id laneID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(id, true)
}

// deleted records that the store has a lane no longer.
func (l *laneLimit) deleted(id laneID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(id)
}

func (l *laneLimit) put(id laneID, stored bool) {
	h := hookOf(id)
	if l.lanes[h] == nil {
		l.lanes[h] = map[laneID]bool{}
	}
	l.lanes[h][id] = stored
}

func (l *laneLimit) remove(id laneID) {
	h := hookOf(id)
	if delete(l.lanes[h], id); len(l.lanes[h]) == 0 {
		delete(l.lanes, h)
	}
}
