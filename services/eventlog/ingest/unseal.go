package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// seals are the sealed runs of a batch, and what is to be done with their frames in the store.
type seals map[store.Key]sealing

type sealing int

const (
	// sealWhole: the store has the row of the whole run, so its frames are removed.
	sealWhole sealing = iota
	// sealErased: the run was erased since, and its mark follows.
	sealErased
	// sealDamaged: the cold store cannot read the run. The store keeps what it has.
	sealDamaged
)

// unseal returns the frames of a batch with those of sealed runs that the store does not have, in front
// of the frame that seals the run: a store that is being filled finds them nowhere else in the log.
func (i *Ingester) unseal(ctx context.Context, frames []*frame.Frame) ([]*frame.Frame, seals, error) {
	if !slices.ContainsFunc(frames, func(f *frame.Frame) bool { return f.Kind == subject.Seal }) {
		return frames, nil, nil
	}
	var out []*frame.Frame
	found := seals{}
	for _, f := range frames {
		if f.Kind == subject.Seal {
			missing, err := i.missing(ctx, f)
			switch {
			case err == nil:
				found[project.Key(f.Run)] = sealWhole
			case errors.Is(err, runlog.ErrErased):
				found[project.Key(f.Run)] = sealErased
			case errors.Is(err, frame.ErrDamaged):
				found[project.Key(f.Run)] = sealDamaged
				i.slog.Error("a sealed run cannot be read", "tenant", f.Run.Tenant, "run_id", f.Run.RunID, "error", err)
			default:
				return nil, nil, err
			}
			out = append(out, missing...)
		}
		out = append(out, f)
	}
	return out, found, nil
}

// missing returns the frames of a sealed run that the store lacks. Errors: runlog.ErrErased,
// runlog.ErrUnavailable, frame.ErrDamaged.
func (i *Ingester) missing(ctx context.Context, seal *frame.Frame) ([]*frame.Frame, error) {
	s, err := seal.Sealing()
	if err != nil {
		return nil, err
	}
	has := uint64(0)
	row, err := i.store.Run(ctx, project.Key(seal.Run))
	switch {
	case err == nil:
		has = row.Pos
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	if has >= s.Positions.Last() {
		return nil, nil
	}
	all, err := i.log.Run(ctx, seal.Run)
	if errors.Is(err, runlog.ErrSealed) {
		return nil, fmt.Errorf("%w: %w, which this process does not have", frame.ErrDamaged, err)
	}
	return slices.DeleteFunc(all, func(f *frame.Frame) bool { return f.Pos <= has }), err
}
