package postgres

import (
	"context"
	"errors"

	"waybill.dev/waybill/services/eventlog/store"
)

// erase queues the deletion of everything of runs. The server keeps deleted rows in its files until a
// vacuum has removed them and others take their place.
func (w *writing) erase(all []store.Erasure) {
	for _, e := range all {
		tenant, run, created := encode(e.Tenant), encode(e.RunID), encode(e.CreatedAt)
		if len(e.Tags) > 0 {
			tags := make([]string, len(e.Tags))
			for i, tag := range e.Tags {
				tags[i] = encode(tag)
			}
			w.pending.Queue(w.sql.eraseTags, tenant, tags, created, run)
		}
		for _, m := range e.Marks {
			w.pending.Queue(w.sql.eraseMark, tenant, string(m.Name), encode(m.Value), encode(m.CreatedAt), run)
		}
		for _, v := range e.Substitutions {
			w.pending.Queue(w.sql.eraseSubstitution, tenant, encode(v.At), run, int32(v.Sequence)) //nolint:gosec // G115: sequences are far below 2^31
		}
		w.pending.Queue(w.sql.eraseFrames, tenant, run)
		w.pending.Queue(w.sql.eraseText, tenant, run)
		w.pending.Queue(w.sql.eraseRun, tenant, run)
	}
}

// dropAside drops old generations, which may hold erased runs.
func (s *Store) dropAside(ctx context.Context, current int64) {
	names, err := s.old(ctx, current)
	for _, name := range names {
		if _, derr := s.writer.Exec(ctx, `DROP SCHEMA IF EXISTS `+name+` CASCADE`); derr != nil {
			err = errors.Join(err, derr)
		}
	}
	if err != nil {
		s.log.Error("an old read model, which may hold an erased run, cannot be removed", "error", s.scrub(err))
	}
}
