package admission

import "time"

const (
	// shareFor is how long an idle tenant keeps its share.
	shareFor = 2 * time.Second
	// maxShares limits the number of separate shares. Further tenants share one.
	maxShares = 4096
	// shareDebt is how many seconds of the rate shares may borrow. A new tenant gets its
	// first start from it.
	shareDebt = 1.0
)

// shares divide a rate equally among active tenants. The rate that one tenant leaves unused
// is available to all.
type shares map[string]*startShare

type startShare struct {
	tokens float64
	filled time.Time // tokens are counted up to this time
}

// others is the key of the shared share; no tenant has this name.
const others = "*"

// take uses one start of a tenant's share. It returns false if the share is used up or the
// tenant is unknown.
func (all shares) take(tenant string, now time.Time, rate float64) bool {
	if tenant == "" {
		return false
	}
	if all[tenant] == nil && len(all) >= maxShares {
		tenant = others
	}
	s := all[tenant]
	if s == nil {
		s = &startShare{tokens: 1, filled: now}
		all[tenant] = s
	}
	part := rate / float64(len(all))
	s.tokens = min(s.tokens+part*now.Sub(s.filled).Seconds(), max(1, part*interval.Seconds()))
	s.filled = now
	if s.tokens < 1 {
		return false
	}
	s.tokens--
	return true
}

// forget removes the shares of idle tenants.
func (all shares) forget(now time.Time) {
	for tenant, s := range all {
		if now.Sub(s.filled) > shareFor {
			delete(all, tenant)
		}
	}
}
