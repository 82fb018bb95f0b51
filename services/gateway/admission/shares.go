package admission

import "time"

const (
	// shareFor is for how long a tenant that asks for nothing keeps its share.
	shareFor = 2 * time.Second
	// mostShares bounds the tenants that are told apart; those beyond have one share together.
	mostShares = 4096
	// shareDebt is for how many seconds of the rate shares may be used up before what was left of it
	// has come in: tenants that have just come all have a start at hand.
	shareDebt = 1.0
)

// shares divide a rate among the tenants that ask: each may use the same part of it whatever
// the others ask for, and what one does not use is there for all.
type shares map[string]*share

type share struct {
	tokens float64
	filled time.Time // up to here the tokens are counted
}

// others is the share of those beyond mostShares; no tenant has the name.
const others = "*"

// take uses one start of a tenant's part of the rate, if there is one; nobody's tenant has none.
func (all shares) take(tenant string, now time.Time, rate float64) bool {
	if tenant == "" {
		return false
	}
	if all[tenant] == nil && len(all) >= mostShares {
		tenant = others
	}
	s := all[tenant]
	if s == nil {
		s = &share{tokens: 1, filled: now}
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

// forget ends the shares of those who have not asked for a while.
func (all shares) forget(now time.Time) {
	for tenant, s := range all {
		if now.Sub(s.filled) > shareFor {
			delete(all, tenant)
		}
	}
}
