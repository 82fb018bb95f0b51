package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/kv"
)

// HeldKey is a key that the host accepts now.
type HeldKey struct {
	Tenant, ID string
	Scopes     []string
}

// hostActor is the actor of key changes: the host, configured by its operator.
const hostActor = "host"

// keyRecord is the last recorded state of a key.
type keyRecord struct {
	Scopes []string `json:"scopes"`
	Gone   bool     `json:"gone,omitempty"`
}

// SyncKeys records the changes of keys since the last call: new keys, changed scopes, and
// revoked keys. The audit entry is written before the key's state. So a host that crashes
// between the two records a change twice, never zero times.
func SyncKeys(ctx context.Context, to Recorder, store kv.Store, held []HeldKey) error {
	before, err := kv.List(ctx, store, "key.")
	if err != nil {
		return fmt.Errorf("audit of keys: %w", err)
	}
	known := make(map[string]kv.Entry, len(before))
	for _, e := range before {
		known[e.Key] = e
	}
	var errs []error
	for _, k := range held {
		name := "key." + k.Tenant + "." + k.ID
		errs = append(errs, syncHeld(ctx, to, store, name, known[name], k))
		delete(known, name)
	}
	for name, e := range known {
		errs = append(errs, syncGone(ctx, to, store, name, e))
	}
	return errors.Join(errs...)
}

func syncHeld(ctx context.Context, to Recorder, store kv.Store, name string, e kv.Entry, k HeldKey) error {
	var was keyRecord
	if e.Value != nil {
		if err := json.Unmarshal(e.Value, &was); err != nil {
			return fmt.Errorf("audit of keys: %s: %w", name, err)
		}
	}
	slices.Sort(k.Scopes)
	action := "key.created"
	switch {
	case e.Value != nil && !was.Gone && slices.Equal(was.Scopes, k.Scopes):
		return nil
	case e.Value != nil && !was.Gone:
		action = "key.scopes-changed"
	}
	entry := Entry{Action: action, Actor: hostActor, Target: "keys/" + k.ID, Details: map[string]any{"scopes": k.Scopes}}
	return recordChange(ctx, to, store, name, e.Revision, entry, keyRecord{Scopes: k.Scopes})
}

func syncGone(ctx context.Context, to Recorder, store kv.Store, name string, e kv.Entry) error {
	var was keyRecord
	if err := json.Unmarshal(e.Value, &was); err != nil || was.Gone {
		return err
	}
	_, id, _ := strings.Cut(strings.TrimPrefix(name, "key."), ".")
	was.Gone = true
	return recordChange(ctx, to, store, name, e.Revision, Entry{
		Action: "key.revoked",
		Actor:  hostActor,
		Target: "keys/" + id,
	}, was)
}

func recordChange(ctx context.Context, to Recorder, store kv.Store, name string, revision uint64, e Entry, r keyRecord) error {
	tenant, _, _ := strings.Cut(strings.TrimPrefix(name, "key."), ".")
	if err := to.Record(ctx, tenant, e); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("audit of keys: %w", err)
	}
	_, err = store.Update(ctx, name, b, revision)
	if errors.Is(err, kv.ErrConflict) {
		return nil // another process has recorded it
	}
	return err
}
