// Package assets stores images, audio and files of models that are too large for a
// run's log.
//
// An asset belongs to a tenant and is served under a signed, unguessable URL. It is
// stored before the event with its URL is recorded, and never deleted while the log
// may contain the URL (OpenWOP envelope contract §17).
package assets

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Store stores assets and makes their URLs. It is safe for concurrent use.
type Store struct {
	blobs blob.Store
	keys  token.Keys
	base  func() string
	clock func() time.Time
}

// DeriveKey derives the signing key of asset URLs from the host's secret.
func DeriveKey(secret []byte) ([]byte, error) {
	return token.DeriveKey(secret, "waybill asset urls")
}

// New makes a store. base returns the address under which tokens are served, without
// a trailing slash.
func New(blobs blob.Store, keys token.Keys, base func() string, clock func() time.Time) (*Store, error) {
	if err := keys.Check(); err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	return &Store{blobs: blobs, keys: keys, base: base, clock: clock}, nil
}

// Members of a blob's meta.
const (
	metaType = "content-type"
	metaName = "file-name"
	metaSave = "attachment"
)

// Save stores an asset of an envelope and returns its URL; see accept.Assets.
func (s *Store) Save(ctx context.Context, at accept.Target, correlationID string, a accept.Asset) (string, error) {
	run := at.Run
	sum := sha256.Sum256([]byte(run.RunID + "\x00" + correlationID + "\x00" + a.MimeType + "\x00" + a.Name + "\x00" + string(a.Data)))
	id := hex.EncodeToString(sum[:16])
	if err := s.put(ctx, run.Tenant, id, a); err != nil {
		return "", err
	}
	return s.url(tokenClaims{Tenant: run.Tenant, Run: run.RunID, Asset: id}), nil
}

// SaveUnbound stores an asset that belongs to no run, and returns its token. The token
// expires after ttl; 0 means never.
func (s *Store) SaveUnbound(ctx context.Context, tenant string, a accept.Asset, ttl time.Duration) (string, error) {
	c := tokenClaims{Tenant: tenant, Asset: strings.ToLower(rand.Text())}
	if ttl > 0 {
		c.Expires = s.clock().Add(ttl).Unix()
	}
	if err := s.put(ctx, tenant, c.Asset, a); err != nil {
		return "", err
	}
	return sign(s.keys, c), nil
}

func (s *Store) put(ctx context.Context, tenant, id string, a accept.Asset) error {
	meta := map[string]string{metaType: a.MimeType}
	if a.Name != "" {
		meta[metaName] = hex.EncodeToString([]byte(a.Name)) // meta values must be ASCII
	}
	if a.Attachment {
		meta[metaSave] = "true"
	}
	if err := s.blobs.Put(ctx, blobName(tenant, id), blob.Blob{Data: a.Data, Meta: meta}); err != nil {
		return fault.New(fault.ServiceUnavailable, "the asset cannot be stored; nothing was recorded; try again").
			After(time.Second).Wrap(err)
	}
	return nil
}

// blobName starts with the tenant, so that no id names an asset of another tenant.
func blobName(tenant, id string) string { return tenant + "/" + id }

func (s *Store) url(c tokenClaims) string { return s.base() + "/" + sign(s.keys, c) }

// Ref identifies a stored asset.
type Ref struct {
	// Run is empty for an asset without a run.
	Tenant, Run, id string
}

// Resolve returns the asset that a URL names. ours reports whether the URL is of this host; the zero Ref is
// that of a URL of this host with a forged or expired token.
func (s *Store) Resolve(address string) (r Ref, ours bool) {
	u, err := url.Parse(address)
	if err != nil {
		return Ref{}, false
	}
	c, ok := verify(s.keys, path.Base(u.Path), s.clock())
	if !ok {
		return Ref{}, strings.HasPrefix(address, s.base()+"/")
	}
	return Ref{Tenant: c.Tenant, Run: c.Run, id: c.Asset}, true
}

// Get returns a stored asset. Errors: those of Load.
func (s *Store) Get(ctx context.Context, r Ref) (accept.Asset, error) {
	return s.get(ctx, blobName(r.Tenant, r.id))
}

// Load returns the asset of a token. Errors: fault.NotFound for a token that is forged,
// expired or of a missing asset, without a distinction; fault.ServiceUnavailable.
func (s *Store) Load(ctx context.Context, text string) (accept.Asset, error) {
	c, ok := verify(s.keys, text, s.clock())
	if !ok {
		return accept.Asset{}, ErrNotFound()
	}
	return s.get(ctx, blobName(c.Tenant, c.Asset))
}

func (s *Store) get(ctx context.Context, blobName string) (accept.Asset, error) {
	b, err := s.blobs.Get(ctx, blobName)
	if errors.Is(err, blob.ErrNotFound) {
		return accept.Asset{}, ErrNotFound()
	}
	if err != nil {
		return accept.Asset{}, fault.New(fault.ServiceUnavailable, "the asset cannot be read now; try again").After(time.Second).Wrap(err)
	}
	name, _ := hex.DecodeString(b.Meta[metaName]) // absent means no name
	return accept.Asset{
		Data:       b.Data,
		MimeType:   b.Meta[metaType],
		Name:       string(name),
		Attachment: b.Meta[metaSave] == "true",
	}, nil
}

// ErrNotFound reports an unknown asset.
func ErrNotFound() error { return fault.New(fault.NotFound, "there is no such asset") }
