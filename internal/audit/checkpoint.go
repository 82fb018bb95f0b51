package audit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Checkpoint signs all entries up to one.
type Checkpoint struct {
	ID         string `json:"checkpoint"`
	AtSequence int64  `json:"atSequence"`
	MerkleRoot string `json:"merkleRoot"`
	Signature  string `json:"signature"`
}

// stored is a checkpoint with what the next one goes on from.
type stored struct {
	Checkpoint

	MadeAt string `json:"madeAt"`
	Tree   tree   `json:"tree"`
}

// Run makes checkpoints, and records what is owed, until ctx ends. Several processes may run over one store: the
// first to make a checkpoint has made it.
func (l *Log) Run(ctx context.Context) error {
	t := time.NewTicker(l.cfg.Tick)
	defer t.Stop()
	seen := map[string]uint64{}
	for {
		l.pay(ctx)
		if err := l.anchorAll(ctx, seen); err != nil && ctx.Err() == nil {
			l.log.Warn("audit checkpoints are late", "error", err)
		}
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			l.pay(ctx)
			return nil
		case <-t.C:
		case <-l.full:
		}
	}
}

// anchorAll looks after every tenant whose log has grown; seen holds how many messages
// of each are covered.
func (l *Log) anchorAll(ctx context.Context, seen map[string]uint64) error {
	all, err := l.store.Tenants(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for tenant, n := range all {
		if seen[tenant] == n {
			continue
		}
		done, err := l.anchor(ctx, tenant)
		errs = append(errs, err)
		if done {
			seen[tenant] = n
		}
	}
	return errors.Join(errs...)
}

// anchor makes the checkpoints that are due; done reports that all entries have one.
func (l *Log) anchor(ctx context.Context, tenant string) (done bool, err error) {
	for {
		last, pos, err := l.lastCheckpoint(ctx, tenant)
		if err != nil {
			return false, err
		}
		m, err := l.store.Last(ctx, List{tenant, Entries})
		if err != nil {
			return false, err
		}
		end, err := tipOf(m)
		if err != nil || end.next == last.Tree.Size {
			return err == nil, err
		}
		size := (last.Tree.Size/l.cfg.Every + 1) * l.cfg.Every
		if size > end.next {
			if size = end.next; !l.due(last) {
				return false, nil
			}
		}
		if err := l.mint(ctx, tenant, last.Tree, size, pos); err != nil && !errors.Is(err, ErrConflict) {
			return false, err
		}
	}
}

// due reports that entries after a checkpoint must not wait for its interval to pass
// before the clock is looked at again.
func (l *Log) due(last stored) bool {
	made, err := time.Parse(time.RFC3339, last.MadeAt)
	return err != nil || l.clock().Sub(made) >= l.cfg.Interval-l.cfg.Tick
}

// lastCheckpoint is the zero value, at position 0, when there is none.
func (l *Log) lastCheckpoint(ctx context.Context, tenant string) (s stored, pos uint64, err error) {
	m, err := l.store.Last(ctx, List{tenant, Checkpoints})
	if err != nil || m == nil {
		return stored{}, 0, err
	}
	if err := json.Unmarshal(m.Lines[0], &s); err != nil {
		return stored{}, 0, fmt.Errorf("%w: the last checkpoint of %s cannot be read", ErrDamaged, tenant)
	}
	return s, m.Pos, nil
}

// mint makes the checkpoint over the first size entries. It goes on from the tree of
// the one before: what was changed since then does not get a signature.
func (l *Log) mint(ctx context.Context, tenant string, t tree, size int64, after uint64) error {
	t.Peaks = append([]string(nil), t.Peaks...)
	if err := l.grow(ctx, tenant, &t, size); err != nil {
		return err
	}
	c := stored{
		Checkpoint: Checkpoint{ID: "chk_" + strings.ToLower(rand.Text()), AtSequence: size - 1, MerkleRoot: t.root()},
		MadeAt:     wire.FormatTime(l.clock()), Tree: t,
	}
	var err error
	if c.Signature, err = l.key.sign(c.MerkleRoot); err != nil {
		return err
	}
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("audit: render checkpoint: %w", err)
	}
	_, err = l.store.Append(ctx, List{tenant, Checkpoints}, c.AtSequence, [][]byte{line}, after)
	return err
}

// grow adds the entries that a tree lacks.
func (l *Log) grow(ctx context.Context, tenant string, t *tree, size int64) error {
	err := l.store.Scan(ctx, List{tenant, Entries}, t.Size, func(m *Message) bool {
		for i, line := range m.Lines {
			if at := m.First + int64(i); at == t.Size && at < size {
				t.add(hash(line))
			}
		}
		return t.Size < size
	})
	if err == nil && t.Size < size {
		err = fmt.Errorf("%w: entry %d of %s is missing", ErrDamaged, t.Size, tenant)
	}
	return err
}
