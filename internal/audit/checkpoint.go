package audit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/protocol/wire"
)

// Checkpoint is a signature of all entries up to AtSequence.
type Checkpoint struct {
	ID         string `json:"checkpoint"`
	AtSequence int64  `json:"atSequence"`
	MerkleRoot string `json:"merkleRoot"`
	Signature  string `json:"signature"`
}

// storedCheckpoint is a checkpoint with the tree that the next one extends.
type storedCheckpoint struct {
	Checkpoint

	MadeAt string `json:"madeAt"`
	Tree   tree   `json:"tree"`
}

// Run makes checkpoints and records the backlog until ctx ends. Several processes may run
// over one store: only the first checkpoint of a race is stored.
func (l *Log) Run(ctx context.Context) error {
	t := time.NewTicker(l.cfg.Tick)
	defer t.Stop()
	seen := map[string]uint64{}
	for {
		l.retryBacklog(ctx)
		if err := l.checkpointAll(ctx, seen); err != nil && ctx.Err() == nil {
			l.log.Warn("audit checkpoints are delayed", "error", err)
		}
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			l.retryBacklog(ctx)
			return nil
		case <-t.C:
		case <-l.checkpointDue:
		}
	}
}

// checkpointAll makes the due checkpoints of every tenant whose log has grown. seen has the
// number of messages of each tenant that are covered.
func (l *Log) checkpointAll(ctx context.Context, seen map[string]uint64) error {
	all, err := l.store.Tenants(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for tenant, n := range all {
		if seen[tenant] == n {
			continue
		}
		var done bool
		err := lifecycle.Contain(l.log, "audit checkpoint", func() (err error) {
			done, err = l.checkpointTenant(ctx, tenant)
			return err
		}, "tenant", tenant)
		if err = l.judge(tenant, err); err != nil {
			errs = append(errs, err)
		}
		if done {
			seen[tenant] = n
		}
	}
	return errors.Join(errs...)
}

// judge records that a tenant's log is damaged, and returns other errors. A damaged log gets entries,
// but no checkpoints: they would sign the damage.
func (l *Log) judge(tenant string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		delete(l.broken, tenant)
	case !errors.Is(err, ErrDamaged) && !errors.Is(err, lifecycle.ErrPanic):
		return err
	case l.broken[tenant] == "":
		l.broken[tenant] = err.Error()
		l.log.Error("the audit log of a tenant is damaged: it gets no checkpoints until it is restored from a backup", "tenant", tenant, "error", err)
	}
	return nil
}

// Broken returns the tenants whose audit log is damaged, sorted.
func (l *Log) Broken() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.broken))
}

// checkpointTenant makes the due checkpoints of a tenant; done reports that all entries
// have one.
func (l *Log) checkpointTenant(ctx context.Context, tenant string) (done bool, err error) {
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
		switch {
		case err != nil || end.next == last.Tree.Size:
			return err == nil, err
		case end.next < last.Tree.Size:
			return false, fmt.Errorf("%w: %s has entries up to %d, and a checkpoint of entry %d", ErrDamaged, tenant, end.next-1, last.AtSequence)
		}
		size := (last.Tree.Size/l.cfg.Every + 1) * l.cfg.Every
		if size > end.next {
			if size = end.next; !l.isDue(last) {
				return false, nil
			}
		}
		if err := l.makeCheckpoint(ctx, tenant, last.Tree, size, pos); err != nil && !errors.Is(err, ErrConflict) {
			return false, err
		}
	}
}

// isDue reports that the interval after a checkpoint ends before the next tick.
func (l *Log) isDue(last storedCheckpoint) bool {
	made, err := time.Parse(time.RFC3339, last.MadeAt)
	return err != nil || l.clock().Sub(made) >= l.cfg.Interval-l.cfg.Tick
}

// lastCheckpoint returns the last checkpoint. Without one it is the zero value at position 0.
func (l *Log) lastCheckpoint(ctx context.Context, tenant string) (s storedCheckpoint, pos uint64, err error) {
	m, err := l.store.Last(ctx, List{tenant, Checkpoints})
	if err != nil || m == nil {
		return storedCheckpoint{}, 0, err
	}
	if err := json.Unmarshal(m.Lines[0], &s); err != nil {
		return storedCheckpoint{}, 0, fmt.Errorf("%w: the last checkpoint of %s, at %d, cannot be read", ErrDamaged, tenant, m.Pos)
	}
	if err := s.check(l.key); err != nil {
		return storedCheckpoint{}, 0, fmt.Errorf("%w: the last checkpoint of %s, at %d: %w", ErrDamaged, tenant, m.Pos, err)
	}
	return s, m.Pos, nil
}

// check returns why a checkpoint cannot be extended; nil if it can.
func (s *storedCheckpoint) check(key *Key) error {
	switch {
	case !s.Tree.sound():
		return errors.New("its tree is not one")
	case s.Tree.Size != s.AtSequence+1 || s.Tree.root() != s.MerkleRoot:
		return errors.New("its tree does not have its root")
	case !key.verify(s.MerkleRoot, s.Signature):
		return errors.New("it is not signed with the key of this host")
	}
	return nil
}

// makeCheckpoint makes the checkpoint over the first size entries. It extends the tree of
// the previous checkpoint, so entries that were changed since then are not signed.
func (l *Log) makeCheckpoint(ctx context.Context, tenant string, t tree, size int64, after uint64) error {
	t.Peaks = append([]string(nil), t.Peaks...)
	if err := l.extendTree(ctx, tenant, &t, size); err != nil {
		return err
	}
	c := storedCheckpoint{
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

// extendTree adds entries to a tree until it has size entries.
func (l *Log) extendTree(ctx context.Context, tenant string, t *tree, size int64) error {
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
