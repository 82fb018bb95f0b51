package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/row"
)

// Run returns the row of a run; see store.Reader.
func (s *Store) Run(ctx context.Context, key store.Key) (store.Run, error) {
	var run store.Run
	err := s.read(ctx, s.readers, func(ctx context.Context, g *generation) (err error) {
		run, err = scanRun(s.readers.QueryRow(ctx, g.sql.run, encode(key.Tenant), encode(key.RunID)))
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return fmt.Errorf("%w: %s", store.ErrNotFound, key.RunID)
		case err == nil:
			// What was read is part of the next batch: its frames are not sent again.
			g.reach(run.Pos)
		}
		return err
	})
	return run, err
}

// framesAtOnce limits the rows that one query of Frames reads.
const framesAtOnce = 1024

// Frames returns frames of a run; see store.Reader. Frames never change, so a page may be read in
// several steps.
func (s *Store) Frames(ctx context.Context, key store.Key, from, limit int) ([]store.Frame, error) {
	p := page{key: key, from: from, limit: limit}
	for p.wants() && !p.end {
		var step page
		err := s.read(ctx, s.readers, func(ctx context.Context, g *generation) error {
			step = p // a retry starts with the same page
			return step.extend(ctx, s, g)
		})
		if err != nil {
			return nil, fmt.Errorf("read frames of run %s: %w", key.RunID, err)
		}
		p = step
	}
	return p.frames, nil
}

// page is a partial answer of Frames.
type page struct {
	key          store.Key
	from, limit  int
	frames       []store.Frame
	events, size int
	end          bool // no more frames follow
}

// extend reads on after the last frame.
func (p *page) extend(ctx context.Context, s *Store, g *generation) error {
	next := p.from
	if n := len(p.frames); n > 0 {
		next = p.frames[n-1].Last + 1
	}
	// The first row may end before next, and a record has no events.
	most := min(p.limit-p.events, framesAtOnce-2) + 2
	rows, err := s.readers.Query(ctx, g.sql.frames, encode(p.key.Tenant), encode(p.key.RunID), next, most, store.PageBytes-p.size)
	if err != nil {
		return err
	}
	defer rows.Close()
	read, had := 0, len(p.frames)
	for ; p.wants() && rows.Next(); read++ {
		f, err := scanFrame(rows, p.key)
		if err != nil {
			return err
		}
		if f.Last < next { // ends before the requested events
			continue
		}
		p.frames = append(p.frames, f)
		p.events += f.Last + 1 - max(f.First, p.from, 0)
		p.size += len(f.Body)
	}
	// Skipped rows also used up part of the byte limit.
	taken := len(p.frames) - had
	p.end = taken == 0 || taken == read && read < most
	return rows.Err()
}

func (p *page) wants() bool { return p.events < p.limit && p.size < store.PageBytes }

func scanRun(from pgx.Row) (store.Run, error) {
	var (
		r      store.Run
		status string
		tags   string
		due    *int64
		facts  factScan
		sum    int64
	)
	into := []any{
		&r.Tenant, &r.RunID, &r.WorkflowID, &status, &r.CreatedAt, &r.StartedAt, &r.CompletedAt,
		&r.ErrorCode, &tags, &r.Head, &r.Pos, &r.Hash, &due, &r.Asks, &r.LastEventAt, &r.Waits,
		&r.Owner.Process, &r.Owner.Epoch, &r.Owner.Since, &r.Damage,
	}
	err := from.Scan(append(facts.into(into), &sum)...)
	if err != nil {
		return store.Run{}, err
	}
	for _, text := range []*string{
		&r.Tenant, &r.RunID, &r.WorkflowID, &status, &r.CreatedAt, &r.StartedAt, &r.CompletedAt,
		&r.ErrorCode, &tags, &r.Hash, &r.Owner.Process, &r.Damage,
	} {
		*text = decode(*text)
	}
	r.Status, r.Tags = wire.Status(status), row.SplitTags(tags)
	r.Facts = facts.facts()
	if due != nil {
		r.DueMs = *due
	}
	return r, row.SumRun(&r, tags).Verify(sum, "row", r.Key)
}

func scanFrame(from pgx.Row, key store.Key) (store.Frame, error) {
	f := store.Frame{Key: key}
	var (
		types string
		sum   int64
	)
	if err := from.Scan(&f.First, &f.Last, &types, &sum, &f.Body); err != nil {
		return f, err
	}
	types = decode(types)
	f.Types = row.SplitTypes(types)
	return f, row.SumFrame(&f, types).Verify(sum, "frame", key)
}

func scanSubstitution(from pgx.Row) (store.Substitution, error) {
	var (
		s       store.Substitution
		missing string
		sum     int64
	)
	err := from.Scan(&s.Tenant, &s.At, &s.RunID, &s.Sequence, &s.NodeID, &s.Original.Provider, &s.Original.Model,
		&s.Fallback.Provider, &s.Fallback.Model, &missing, &sum)
	if err != nil {
		return s, err
	}
	for _, text := range []*string{
		&s.Tenant, &s.At, &s.RunID, &s.NodeID, &s.Original.Provider, &s.Original.Model,
		&s.Fallback.Provider, &s.Fallback.Model, &missing,
	} {
		*text = decode(*text)
	}
	s.Missing = row.SplitTags(missing)
	return s, row.SumSubstitution(&s, missing).Verify(sum, "substitution", s.Key)
}
