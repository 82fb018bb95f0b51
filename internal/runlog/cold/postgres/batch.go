package postgres

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/protocol/subject"
)

// Bucket stores objects by name.
type Bucket interface {
	// Put stores an object. It is durable when Put returns.
	Put(ctx context.Context, name string, data []byte) error
	// Range returns some bytes of an object. Errors: ErrNoObject.
	Range(ctx context.Context, name string, at, size int64) ([]byte, error)
	// Delete removes an object, if there is one.
	Delete(ctx context.Context, name string) error
	// String returns the address of the bucket, without credentials.
	String() string
}

// ErrNoObject means that a bucket has no object of a name, or that it ends before the range.
var ErrNoObject = errors.New("not in the bucket")

// batchSuffix ends the names of batches.
const batchSuffix = ".wbc"

// batch is an object of the bucket with the contents of several runs; nil has none.
type batch struct {
	id   int64
	name string
	keys map[*cold.Object][]byte
	// places are where the blocks of an object begin.
	places map[*cold.Object][]int64
}

// writeBatch writes the contents of objects to the bucket, and reads them back. The index has the batch
// before it is written, so that every batch in the bucket is listed. It returns nil without a bucket.
func (s *Store) writeBatch(ctx context.Context, objects []*cold.Object) (*batch, error) {
	if s.cfg.Bucket == nil || len(objects) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	b := &batch{name: time.Now().UTC().Format("2006/01/02/") + rand.Text() + batchSuffix, keys: map[*cold.Object][]byte{}, places: map[*cold.Object][]int64{}}
	var content []byte
	for _, o := range objects {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		b.keys[o] = key
		for n, block := range o.Blocks {
			b.places[o] = append(b.places[o], int64(len(content)))
			var err error
			if content, err = seal(content, key, o.Run, n, block.Data); err != nil {
				return nil, err
			}
		}
	}
	err := s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := s.claim(ctx, tx); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `INSERT INTO batches (name) VALUES ($1) RETURNING id`, b.name).Scan(&b.id)
	})
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Bucket.Put(ctx, b.name, content); err != nil {
		return nil, fmt.Errorf("%w: %w", cold.ErrUnavailable, err)
	}
	back, err := s.cfg.Bucket.Range(ctx, b.name, 0, int64(len(content)))
	if err != nil {
		return nil, fmt.Errorf("%w: read back: %w", cold.ErrUnavailable, err)
	}
	if !bytes.Equal(back, content) { // it must not replace an object that can be read
		return nil, fmt.Errorf("%w: %s: %s has other bytes than were written", cold.ErrUnavailable, s.cfg.Bucket, b.name)
	}
	s.batch.keep(b.name, back)
	return b, nil
}

// use counts the runs of a batch. Another process may have removed a batch that was written for too long.
func (b *batch) use(ctx context.Context, tx pgx.Tx, runs int) error {
	if b == nil {
		return nil
	}
	tag, err := tx.Exec(ctx, `UPDATE batches SET runs = $2, used = true WHERE id = $1 AND runs = 0`, b.id, runs)
	if err == nil && tag.RowsAffected() == 0 {
		err = errors.New("the batch was removed while it was written")
	}
	return err
}

// of returns the columns of an object.
func (b *batch) of(o *cold.Object) (id any, key []byte) {
	if b == nil {
		return nil, nil
	}
	return b.id, b.keys[o]
}

// placed returns the columns of a block: its data, or its place in the batch.
func (b *batch) placed(o *cold.Object, n int) (data []byte, place any) {
	if b != nil {
		return nil, b.places[o][n]
	}
	if data = o.Blocks[n].Data; data == nil {
		data = []byte{}
	}
	return data, nil
}

// place is where a block is in the bucket.
type place struct {
	batch *string
	at    *int64
	size  int64
	key   []byte
	// in is the address of the batch's bucket.
	in *string
}

// overhead is what the encryption of a block adds.
const overhead = 16

// fetch reads a block from the bucket.
func (s *Store) fetch(ctx context.Context, run subject.Run, block int, p place) ([]byte, error) {
	if p.batch == nil || p.at == nil || s.cfg.Bucket == nil {
		return nil, fmt.Errorf("%w: run %s is in a bucket that this process does not have", cold.ErrUnavailable, run.RunID)
	}
	if err := s.mine(p.in); err != nil {
		return nil, err
	}
	sealed, ok := s.batch.part(*p.batch, *p.at, p.size+overhead)
	if !ok {
		var err error
		sealed, err = s.cfg.Bucket.Range(ctx, *p.batch, *p.at, p.size+overhead)
		switch {
		case errors.Is(err, ErrNoObject):
			return nil, fmt.Errorf("%w: content of run %s: %w", cold.ErrDamaged, run.RunID, err)
		case err != nil:
			return nil, fmt.Errorf("%w: %w", cold.ErrUnavailable, err)
		}
	}
	aead, nonce, err := cipherOf(p.key, block)
	if err != nil {
		return nil, fmt.Errorf("%w: key of run %s: %w", cold.ErrDamaged, run.RunID, err)
	}
	data, err := aead.Open(nil, nonce, sealed, about(run))
	if err != nil {
		return nil, fmt.Errorf("%w: block %d of run %s in the bucket", cold.ErrDamaged, block, run.RunID)
	}
	return data, nil
}

// cipherOf returns the cipher of a block. A key encrypts one object, so a block's number is its nonce.
func cipherOf(key []byte, block int) (cipher.AEAD, []byte, error) {
	c, err := aes.NewCipher(key)
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCM(c)
	if err != nil {
		return nil, nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	binary.BigEndian.PutUint64(nonce[4:], uint64(block)) //nolint:gosec // G115: not negative
	return aead, nonce, nil
}

func about(run subject.Run) []byte { return []byte(run.Tenant + "/" + run.RunID) }

// seal appends an encrypted block.
func seal(to, key []byte, run subject.Run, block int, data []byte) ([]byte, error) {
	aead, nonce, err := cipherOf(key, block)
	if err != nil {
		return nil, err
	}
	return aead.Seal(to, nonce, data, about(run)), nil
}

// recentBatch is the last batch that was read back, for the sealer that reads its runs.
type recentBatch struct {
	mu      sync.Mutex // guards the fields below
	name    string
	content []byte
}

func (r *recentBatch) keep(name string, content []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.name, r.content = name, content
}

// part returns a copy of some bytes of a batch, if it is the last one.
func (r *recentBatch) part(name string, at, size int64) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.name != name || at < 0 || size < 0 || at+size > int64(len(r.content)) {
		return nil, false
	}
	return append([]byte(nil), r.content[at:at+size]...), true
}
