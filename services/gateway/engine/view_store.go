package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
)

// Limits of saved views. With maxViewBytes they also limit the answer of a list: 2 MiB.
const (
	maxOwnViews    = 100
	maxSharedViews = 400
	maxTenantViews = 2000
	maxViewBytes   = 4096
)

// storedView is a view as it is stored.
type storedView struct {
	ID        string   `json:"viewId"`
	Name      string   `json:"name"`
	Filter    string   `json:"filter,omitempty"`
	Sort      string   `json:"sort,omitempty"`
	Order     string   `json:"order,omitempty"`
	Columns   []string `json:"columns,omitempty"`
	Shared    bool     `json:"shared,omitempty"`
	Owner     string   `json:"owner"`
	UpdatedAt string   `json:"updatedAt"`
}

// ViewStore keeps saved views of the list of runs. It is safe for concurrent use.
type ViewStore struct{ Store kv.Store }

// viewPrefix is the prefix of the keys of a tenant's views.
func viewPrefix(tenant string) string { return "view." + tenant + "." }

// viewKey is the key of a view. An owner is any printable text.
func viewKey(tenant, owner, id string) string {
	return viewPrefix(tenant) + "=" + base64.RawURLEncoding.EncodeToString([]byte(owner)) + "." + id
}

// list returns the views that an owner sees.
func (s *ViewStore) list(ctx context.Context, tenant, owner string) ([]storedView, error) {
	all, err := s.all(ctx, tenant)
	if err != nil {
		return nil, err
	}
	var out []storedView
	for _, v := range all {
		if v.Shared || v.Owner == owner {
			out = append(out, v)
		}
	}
	return out, nil
}

func (s *ViewStore) all(ctx context.Context, tenant string) ([]storedView, error) {
	entries, err := kv.List(ctx, s.Store, viewPrefix(tenant))
	if err != nil {
		return nil, viewsUnavailable(err)
	}
	out := make([]storedView, 0, len(entries))
	for _, e := range entries {
		var v storedView
		if json.Unmarshal(e.Value, &v) == nil { // one that cannot be read must not hide the others
			out = append(out, v)
		}
	}
	return out, nil
}

// put stores a view of an owner in place of an earlier one.
func (s *ViewStore) put(ctx context.Context, tenant string, v storedView) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("render view: %w", err)
	}
	if len(doc) > maxViewBytes {
		return fault.InvalidBody("/filter", "the view takes %d bytes; the limit is %d", len(doc), maxViewBytes)
	}
	all, err := s.all(ctx, tenant)
	if err != nil {
		return err
	}
	if err := checkRoom(all, v); err != nil {
		return err
	}
	if _, err := s.Store.Put(ctx, viewKey(tenant, v.Owner, v.ID), doc); err != nil {
		return viewsUnavailable(err)
	}
	return nil
}

// checkRoom returns an error if a view would exceed a limit. Requests at the same time may exceed it
// by a few.
func checkRoom(all []storedView, v storedView) error {
	own, shared, total := 1, 0, 1
	if v.Shared {
		shared = 1
	}
	for _, other := range all {
		if other.Owner == v.Owner && other.ID == v.ID {
			continue
		}
		total++
		if other.Owner == v.Owner {
			own++
		}
		if other.Shared {
			shared++
		}
	}
	switch {
	case own > maxOwnViews:
		return fault.New(fault.Conflict, "you have %d views, which is the limit; delete one", maxOwnViews).With("limit", maxOwnViews)
	case v.Shared && shared > maxSharedViews:
		return fault.New(fault.Conflict, "the tenant has %d shared views, which is the limit", maxSharedViews).With("limit", maxSharedViews)
	case total > maxTenantViews:
		return fault.New(fault.Conflict, "the tenant has %d views, which is the limit", maxTenantViews).With("limit", maxTenantViews)
	}
	return nil
}

// remove deletes a view of an owner. Errors: fault.NotFound.
func (s *ViewStore) remove(ctx context.Context, tenant, owner, id string) error {
	key := viewKey(tenant, owner, id)
	for {
		e, err := s.Store.Get(ctx, key)
		switch {
		case errors.Is(err, kv.ErrNotFound):
			return fault.New(fault.NotFound, "you have no view with this id")
		case err != nil && !errors.Is(err, kv.ErrDamaged):
			return viewsUnavailable(err)
		}
		err = s.Store.Delete(ctx, key, e.Revision)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, kv.ErrConflict): // the owner has saved it since; delete that, too
			return viewsUnavailable(err)
		}
	}
}

func viewsUnavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the store of views is unavailable; retry").After(time.Second).Wrap(err)
}
