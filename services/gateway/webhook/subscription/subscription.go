// Package subscription stores webhook and callback subscriptions in two records each: what
// the tenant subscribed to, which never changes; and its state, which is the generation of
// the secret and the health of deliveries.
package subscription

import (
	"slices"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Subscription is what a tenant subscribed to. It never changes.
type Subscription struct {
	Tenant string           `json:"tenant"`
	ID     string           `json:"id"`
	URL    string           `json:"url"`
	Events []wire.EventType `json:"events"`
	// Tags select runs that have at least one of them; empty selects all runs.
	Tags      []string `json:"tags,omitempty"`
	CreatedAt string   `json:"createdAt"`
	// After is the end of the run log when the subscription was created. Only later frames
	// are delivered.
	After uint64 `json:"after"`
	// Callback marks the subscription of callback URLs at an origin, which is in URL. It
	// delivers questions of runs; see NewCallback.
	Callback bool `json:"callback,omitempty"`
}

// Wants reports whether one of the types is subscribed.
func (s *Subscription) Wants(types []wire.EventType) bool {
	return slices.ContainsFunc(types, s.WantsType)
}

// WantsType reports whether a type is subscribed. Stored callbacks may be older than
// escalation events; they want those, too.
func (s *Subscription) WantsType(t wire.EventType) bool {
	return slices.Contains(s.Events, t) || s.Callback && slices.Contains(questionEvents, t)
}

// Covers reports whether a run is selected by its record. Replays never are (OpenWOP host
// contract §7.2, §10.5), nor runs of a single node.
func (s *Subscription) Covers(r *wire.RunRecord) bool {
	if r.Owner.Tenant != s.Tenant || r.Silent() {
		return false
	}
	if s.Callback {
		return r.CallbackURL != "" && Origin(r.CallbackURL) == s.URL
	}
	return len(s.Tags) == 0 || slices.ContainsFunc(s.Tags, func(t string) bool { return slices.Contains(r.Tags, t) })
}

// Target returns the URL for deliveries of a run.
func (s *Subscription) Target(r *wire.RunRecord) string {
	if s.Callback {
		return r.CallbackURL
	}
	return s.URL
}

// State is the mutable part of a subscription.
type State struct {
	Key Key `json:"key"`
	// Previous signs in addition to Key until PreviousUntil. Its Generation is 0 if there is
	// none.
	Previous      Key       `json:"previous,omitzero"`
	PreviousUntil time.Time `json:"previousUntil,omitzero"`
	Health        Health    `json:"health"`
	Dropped       Dropped   `json:"dropped,omitzero"`
}

// Dropped are the events that were not queued, because the subscription had too many runs with pending
// deliveries.
type Dropped struct {
	Events int64 `json:"events"`
	// First and Last are the times of the first and the last one.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Overlap returns the previous key, and whether it still signs.
func (s *State) Overlap(now time.Time) (Key, bool) {
	return s.Previous, s.Previous.Generation > 0 && now.Before(s.PreviousUntil)
}

// Key identifies a secret without containing it.
type Key struct {
	// Generation is 1 for the first secret and increases with each rotation.
	Generation int `json:"generation"`
	// Fingerprint is the first 8 hex digits of the secret's SHA-256.
	Fingerprint string `json:"fingerprint"`
}

// Entry is a subscription with its state, each as of a revision.
type Entry struct {
	Subscription
	// Revision is the store's revision at creation. A later subscription has a greater one.
	Revision      uint64
	State         State
	StateRevision uint64
}
