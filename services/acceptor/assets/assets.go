// Package assets keeps what models answer with besides text: images, sounds and
// files that are too large for a run's log.
//
// An asset belongs to a tenant and is reached by a signed URL that nobody can
// guess. It is stored before the event that names it is recorded, and never
// deleted while the log may name it (OpenWOP envelope contract §17).
package assets

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Vault stores assets and makes their URLs. It is safe for concurrent use.
type Vault struct {
	blobs blob.Store
	keys  token.Keys
	base  func() string
	clock func() time.Time
}

// DeriveKey makes a signing key of the host's secret, so that one secret serves
// several ends.
func DeriveKey(secret []byte) ([]byte, error) {
	return token.DeriveKey(secret, "waybill asset urls")
}

// New makes a vault. base is the address under which tokens are served, without a
// slash at its end.
func New(blobs blob.Store, keys token.Keys, base func() string, clock func() time.Time) (*Vault, error) {
	if err := keys.Check(); err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	return &Vault{blobs: blobs, keys: keys, base: base, clock: clock}, nil
}

// Members of a blob's meta.
const (
	metaType = "content-type"
	metaName = "file-name"
	metaSave = "attachment"
)

// Keep stores an asset of an envelope and gives its URL. The same envelope gives
// the same asset each time, whoever asks.
func (v *Vault) Keep(ctx context.Context, at accept.Place, correlationID string, a accept.Asset) (string, error) {
	run := at.Run
	sum := sha256.Sum256([]byte(run.RunID + "\x00" + correlationID + "\x00" + a.MimeType + "\x00" + a.Name + "\x00" + string(a.Data)))
	id := hex.EncodeToString(sum[:16])
	if err := v.put(ctx, run.Tenant, id, a); err != nil {
		return "", err
	}
	return v.url(claim{Tenant: run.Tenant, Run: run.RunID, Asset: id}), nil
}

// Put stores an asset that belongs to no run; its URL is good for a time, 0: for ever.
func (v *Vault) Put(ctx context.Context, tenant string, a accept.Asset, good time.Duration) (string, error) {
	c := claim{Tenant: tenant, Asset: strings.ToLower(rand.Text())}
	if good > 0 {
		c.Expires = v.clock().Add(good).Unix()
	}
	if err := v.put(ctx, tenant, c.Asset, a); err != nil {
		return "", err
	}
	return sign(v.keys, c), nil
}

func (v *Vault) put(ctx context.Context, tenant, id string, a accept.Asset) error {
	meta := map[string]string{metaType: a.MimeType}
	if a.Name != "" {
		meta[metaName] = hex.EncodeToString([]byte(a.Name)) // any text; meta holds ASCII
	}
	if a.Attachment {
		meta[metaSave] = "true"
	}
	if err := v.blobs.Put(ctx, blobName(tenant, id), blob.Blob{Data: a.Data, Meta: meta}); err != nil {
		return fault.New(fault.ServiceUnavailable, "the asset cannot be stored, and nothing is recorded without it; try again").
			After(time.Second).Wrap(err)
	}
	return nil
}

// blobName begins with the tenant, so that no id reaches another's assets.
func blobName(tenant, id string) string { return tenant + "/" + id }

func (v *Vault) url(c claim) string { return v.base() + "/" + sign(v.keys, c) }

// Open gives the asset of a token. Errors: fault.NotFound for a token that is not
// ours, has expired, or names nothing: nobody learns which.
func (v *Vault) Open(ctx context.Context, text string) (accept.Asset, error) {
	c, ok := verify(v.keys, text, v.clock())
	if !ok {
		return accept.Asset{}, notFound()
	}
	b, err := v.blobs.Get(ctx, blobName(c.Tenant, c.Asset))
	if errors.Is(err, blob.ErrNotFound) {
		return accept.Asset{}, notFound()
	}
	if err != nil {
		return accept.Asset{}, fault.New(fault.ServiceUnavailable, "the asset cannot be read now; try again").After(time.Second).Wrap(err)
	}
	name, _ := hex.DecodeString(b.Meta[metaName]) // none: no name
	return accept.Asset{Data: b.Data, MimeType: b.Meta[metaType], Name: string(name), Attachment: b.Meta[metaSave] == "true"}, nil
}

func notFound() error { return fault.New(fault.NotFound, "there is no such asset") }
