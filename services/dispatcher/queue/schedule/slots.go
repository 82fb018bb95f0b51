package schedule

// Slots counts the slots of one dispatcher by tenant. It is not safe for concurrent use.
type Slots struct {
	size, reserve int
	weight        func(tenant string) int
	held          map[string]int
	total         int
}

// reservePart is the divisor of the reserve: one eighth of the regular slots, at least one.
const reservePart = 8

// Reserve is the number of reserve slots of a dispatcher with size regular ones.
func Reserve(size int) int { return max(1, size/reservePart) }

// NewSlots returns size regular slots and the reserve. weight returns a tenant's weight, at least
// 1.
func NewSlots(size int, weight func(tenant string) int) *Slots {
	return &Slots{size: size, reserve: Reserve(size), weight: weight, held: map[string]int{}}
}

// Fits reports whether a run of the tenant may have a slot now.
//
// Any tenant may take a regular slot. The reserve is for tenants below their share, and its last
// half for tenants that hold nothing, so that one busy tenant does not use it up for the next.
func (s *Slots) Fits(tenant string) bool {
	if s.total < s.size {
		return true
	}
	free, held := s.size+s.reserve-s.total, s.held[tenant]
	switch {
	case free <= 0:
		return false
	case held == 0:
		return true
	default:
		return free > (s.reserve+1)/2 && s.belowShare(tenant)
	}
}

// belowShare reports whether the tenant holds less of the regular slots than its weight gives it
// among the tenants that hold any.
func (s *Slots) belowShare(tenant string) bool {
	sum := 0
	for t := range s.held {
		sum += s.weight(t)
	}
	if s.held[tenant] == 0 {
		sum += s.weight(tenant)
	}
	return s.held[tenant]*sum < s.size*s.weight(tenant)
}

// load is the tenant's slots per weight: the lower, the earlier it is served.
func (s *Slots) load(tenant string) float64 {
	return float64(s.held[tenant]) / float64(s.weight(tenant))
}

// Acquire takes a slot for the tenant.
func (s *Slots) Acquire(tenant string) {
	s.held[tenant]++
	s.total++
}

// Release returns a slot of the tenant.
func (s *Slots) Release(tenant string) {
	if s.held[tenant]--; s.held[tenant] <= 0 {
		delete(s.held, tenant)
	}
	s.total--
}

// Free is the number of free regular slots.
func (s *Slots) Free() int { return max(0, s.size-s.total) }

// Held is the number of slots in use.
func (s *Slots) Held() int { return s.total }
