package queue

import (
	"encoding/json"
	"strings"

	"waybill.dev/waybill/internal/kv"
)

// see takes what became of a ticket.
func (k *Desk) see(e kv.Entry) {
	var t ticket
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &t); err != nil {
			k.deps.Logger.Warn("ticket not readable", "key", e.Key, "error", err)
			return
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	was, known := k.entries[e.Key]
	if known && was.rev > e.Revision {
		return
	}
	if e.Value == nil {
		delete(k.mine, e.Key)
		k.drop(e.Key)
		return
	}
	switch {
	case t.Holder == "" && t.Tries == 0 && !known:
		k.parked++
	case t.Holder != "" && was.Holder == "":
		k.claimed++
	}
	k.put(e.Key, entry{ticket: t, rev: e.Revision, round: k.rounds[prefixOf(e.Key)]})
	k.signal()
}

// prefixOf is the prefix of a ticket's key.
func prefixOf(key string) string { return key[:strings.IndexByte(key, '.')+1] }

// nextRound begins a round: what the watch that follows does not see is dropped by sweep.
func (k *Desk) nextRound(prefix string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rounds[prefix]++
}

// sweep drops the tickets under a prefix that the last watch did not see.
func (k *Desk) sweep(prefix string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, e := range k.entries {
		if strings.HasPrefix(key, prefix) && e.round < k.rounds[prefix] {
			delete(k.mine, key)
			k.drop(key)
		}
	}
}

// put notes a ticket. Call it with the lock.
func (k *Desk) put(key string, e entry) {
	k.count(key, -1)
	k.entries[key] = e
	k.index(key, e)
	k.count(key, 1)
	k.list(key)
}

// drop forgets a ticket. Call it with the lock.
func (k *Desk) drop(key string) {
	k.count(key, -1)
	k.unindex(key, k.entries[key])
	delete(k.entries, key)
	k.book.Remove(key)
}

// count adds the ticket to the totals, or takes it away. Call it with the lock.
func (k *Desk) count(key string, n int) {
	e, ok := k.entries[key]
	k.holders.count(e.Holder, n)
	switch {
	case !ok:
	case e.Holder != "":
		k.heldTickets += n
	default:
		k.byReason[e.Reason] += n
		if e.Reason == Capacity {
			if k.byTenant[e.Tenant] += n; k.byTenant[e.Tenant] == 0 {
				delete(k.byTenant, e.Tenant)
			}
		}
	}
}

// list puts a ticket into the book if it can be claimed. Call it with the lock.
func (k *Desk) list(key string) {
	e, ok := k.entries[key]
	// One that names this process, and is not its own, was claimed by a call whose answer was
	// lost.
	if !ok || k.mine[key] || e.Holder != k.deps.Leases.Process() && !k.holders.gone(e.Holder) {
		k.book.Remove(key)
		return
	}
	k.book.Put(e.listed(key, limitsOf(e.run(), e.Kind, e.Charged, e.Schedule, k.deps.Tenant(e.Tenant))))
}

// relist lists the tickets of a process that died.
func (k *Desk) relist(process string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, e := range k.entries {
		if e.Holder == process {
			k.list(key)
		}
	}
	k.signal()
}

// disown ends this process's hold of a ticket; it can be claimed again.
func (k *Desk) disown(key string) {
	k.mu.Lock()
	delete(k.mine, key)
	k.list(key)
	k.mu.Unlock()
	k.signal()
}
