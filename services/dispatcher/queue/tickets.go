package queue

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/internal/kv"
)

// applyTicket applies a change of a ticket.
func (s *Scheduler) applyTicket(e kv.Entry) {
	var t ticket
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &t); err != nil {
			s.deps.Logger.Warn("ticket not readable", "key", e.Key, "error", err)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.entries[e.Key]
	if known && was.rev > e.Revision {
		return
	}
	if e.Value == nil {
		delete(s.mine, e.Key)
		s.dropEntry(e.Key)
		return
	}
	switch {
	case t.Holder == "" && t.Tries == 0 && !known:
		s.parked++
	case t.Holder != "" && was.Holder == "":
		s.claimed++
	}
	s.putEntry(e.Key, entry{ticket: t, rev: e.Revision, round: s.rounds[prefixOf(e.Key)]})
	s.signalPick()
}

// prefixOf is the prefix of a ticket's key.
func prefixOf(key string) string { return key[:strings.IndexByte(key, '.')+1] }

// nextRound starts a watch round: sweep drops what the watch does not report.
func (s *Scheduler) nextRound(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds[prefix]++
}

// sweep drops the tickets under a prefix that the last watch did not report.
func (s *Scheduler) sweep(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.entries {
		if strings.HasPrefix(key, prefix) && e.round < s.rounds[prefix] {
			delete(s.mine, key)
			s.dropEntry(key)
		}
	}
}

// putEntry stores a ticket. Call it with the lock.
func (s *Scheduler) putEntry(key string, e entry) {
	s.countEntry(key, -1)
	s.entries[key] = e
	s.indexRun(key, e)
	s.countEntry(key, 1)
	s.listEntry(key)
}

// dropEntry removes a ticket. Call it with the lock.
func (s *Scheduler) dropEntry(key string) {
	s.countEntry(key, -1)
	s.unindexRun(key, s.entries[key])
	delete(s.entries, key)
	s.book.Remove(key)
}

// countEntry adds n to the totals of the ticket. Call it with the lock.
func (s *Scheduler) countEntry(key string, n int) {
	e, ok := s.entries[key]
	s.holders.count(e.Holder, n)
	switch {
	case !ok:
	case e.Holder != "":
		s.heldTickets += n
	default:
		s.byReason[e.Reason] += n
		if e.Reason == Capacity {
			if s.byTenant[e.Tenant] += n; s.byTenant[e.Tenant] == 0 {
				delete(s.byTenant, e.Tenant)
			}
		}
	}
}

// listEntry adds a ticket to the wait list if it can be claimed. Call it with the lock.
func (s *Scheduler) listEntry(key string) {
	e, ok := s.entries[key]
	// A ticket that names this process, and is not in mine, was claimed by a call whose answer was
	// lost.
	if !ok || s.mine[key] || e.Holder != s.deps.Leases.Process() && !s.holders.isDead(e.Holder) {
		s.book.Remove(key)
		return
	}
	settings := s.deps.Tenant(e.Tenant)
	if _, known := s.settings[e.Tenant]; !known {
		s.settings[e.Tenant] = settings
	}
	s.book.Put(e.scheduleTicket(key, limitsOf(e.run(), e.Kind, e.Charged, e.Schedule, settings)))
}

// applySettings lists the waiting runs of tenants again whose settings changed: they wait for other
// limits now.
func (s *Scheduler) applySettings() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, was := range s.settings {
		now := s.deps.Tenant(tenant)
		if !s.book.Has(tenant) {
			delete(s.settings, tenant)
		}
		if now == was {
			continue
		}
		delete(s.settings, tenant)
		s.book.UnblockTenant(tenant)
		for key, e := range s.entries {
			if e.Tenant == tenant {
				s.listEntry(key)
			}
		}
	}
}

// relistHolder lists the tickets of a process that died.
func (s *Scheduler) relistHolder(process string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.entries {
		if e.Holder == process {
			s.listEntry(key)
		}
	}
	s.signalPick()
}

// releaseMine ends this process's use of a ticket; it can be claimed again.
func (s *Scheduler) releaseMine(key string) {
	s.mu.Lock()
	delete(s.mine, key)
	s.listEntry(key)
	s.mu.Unlock()
	s.signalPick()
}
