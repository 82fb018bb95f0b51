// Package subscription keeps who wants to be told of which events: what a tenant asked
// for, written once; and beside it what changes, the generation of the secret and how
// deliveries have gone.
package subscription

import (
	"slices"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Subscription is what was asked for. It never changes.
type Subscription struct {
	Tenant string           `json:"tenant"`
	ID     string           `json:"id"`
	URL    string           `json:"url"`
	Events []wire.EventType `json:"events"`
	// Tags select runs that have one of them; none: all runs.
	Tags      []string `json:"tags,omitempty"`
	CreatedAt string   `json:"createdAt"`
	// After is where the run log ended when it was made: later frames are for it.
	After uint64 `json:"after"`
	// Callback says that it is no webhook: what it is told are the questions of runs whose
	// callbackUrl is at URL, which is an origin; see NewCallback.
	Callback bool `json:"callback,omitempty"`
}

// Wants reports whether one of the types is subscribed.
func (s *Subscription) Wants(types []wire.EventType) bool {
	return slices.ContainsFunc(types, s.WantsType)
}

// WantsType reports whether a type is subscribed. A callback that was made before there
// were levels is told of them, too.
func (s *Subscription) WantsType(t wire.EventType) bool {
	return slices.Contains(s.Events, t) || s.Callback && slices.Contains(asking, t)
}

// Covers reports whether a run is selected by its record: never one that replays
// another (OpenWOP host contract §7.2, §10.5).
func (s *Subscription) Covers(r *wire.RunRecord) bool {
	if r.Owner.Tenant != s.Tenant || r.Replays() {
		return false
	}
	if s.Callback {
		return r.CallbackURL != "" && Origin(r.CallbackURL) == s.URL
	}
	return len(s.Tags) == 0 || slices.ContainsFunc(s.Tags, func(t string) bool { return slices.Contains(r.Tags, t) })
}

// Target is the URL that is told of a run.
func (s *Subscription) Target(r *wire.RunRecord) string {
	if s.Callback {
		return r.CallbackURL
	}
	return s.URL
}

// State is what changes about a subscription.
type State struct {
	Key Key `json:"key"`
	// Previous signs beside Key until PreviousUntil; its Generation is 0 when there is
	// none.
	Previous      Key       `json:"previous,omitzero"`
	PreviousUntil time.Time `json:"previousUntil,omitzero"`
	Health        Health    `json:"health"`
}

// Overlap is the previous key while it still signs.
func (s *State) Overlap(now time.Time) (Key, bool) {
	return s.Previous, s.Previous.Generation > 0 && now.Before(s.PreviousUntil)
}

// Key names a secret without telling it.
type Key struct {
	// Generation is 1 for the first secret, and one more with each rotation.
	Generation int `json:"generation"`
	// Fingerprint is the first 8 hex digits of the secret's SHA-256.
	Fingerprint string `json:"fingerprint"`
}

// Entry is a subscription with its state, as it was at two revisions.
type Entry struct {
	Subscription
	// Revision is where the subscription was made; among all subscriptions, a greater
	// one was made later.
	Revision      uint64
	State         State
	StateRevision uint64
}
