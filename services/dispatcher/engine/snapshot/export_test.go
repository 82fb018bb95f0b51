package snapshot

import (
	"context"

	"waybill.dev/waybill/protocol/subject"
)

// For tests of this package.
var (
	Place    = Key
	MaxBytes = maxBytes
)

// MaxWaiting is how many runs wait for their snapshots.
const MaxWaiting = maxWaiting

// PutAs stores a snapshot under the name of another build or another run.
func (s *Store) PutAs(ctx context.Context, at subject.Run, v *Snapshot, name string) error {
	content, err := v.encode(name)
	if err != nil {
		return err
	}
	_, err = s.kv.Put(ctx, Key(at), s.seal(Key(at), content))
	return err
}

// Build is the name of this build.
func Build() string { return build }
