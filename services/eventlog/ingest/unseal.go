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

// unsealed is the beginning of a batch, with the frames of sealed runs that the store does not have.
type unsealed struct {
	frames []*frame.Frame
	// seals are the sealed runs, and what is to be done with their frames in the store.
	seals map[store.Key]sealing
	// at has the position of the seal for frames that were read from the cold store. They count as
	// arrived there: the store has the log up to a later position than theirs.
	at map[*frame.Frame]uint64
}

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
// of the frame that seals the run: a store that is being filled finds them nowhere else in the log. It
// ends after the run with which the batch reaches the limits of one; rest are the frames after it.
func (i *Ingester) unseal(ctx context.Context, frames []*frame.Frame) (out unsealed, rest []*frame.Frame, err error) {
	if !slices.ContainsFunc(frames, func(f *frame.Frame) bool { return f.Kind == subject.Seal }) {
		return unsealed{frames: frames}, nil, nil
	}
	out = unsealed{seals: map[store.Key]sealing{}, at: map[*frame.Frame]uint64{}}
	size := 0
	for n, f := range frames {
		if f.Kind == subject.Seal {
			missing, err := i.missing(ctx, f)
			switch {
			case err == nil:
				out.seals[project.Key(f.Run)] = sealWhole
			case errors.Is(err, runlog.ErrErased):
				out.seals[project.Key(f.Run)] = sealErased
			case errors.Is(err, frame.ErrDamaged):
				out.seals[project.Key(f.Run)] = sealDamaged
				i.slog.Error("a sealed run cannot be read", "tenant", f.Run.Tenant, "run_id", f.Run.RunID, "error", err)
			default:
				return unsealed{}, nil, err
			}
			for _, m := range missing {
				out.at[m] = f.Pos
			}
			out.frames, size = append(out.frames, missing...), size+bytesOf(missing)
		}
		out.frames = append(out.frames, f)
		if len(out.at) > 0 && (size >= maxBatchBytes || len(out.at) >= maxBatch) {
			return out, frames[n+1:], nil
		}
	}
	return out, nil, nil
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
