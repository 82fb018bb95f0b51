package machine

import (
	"fmt"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Load folds the frames of a run's log.
func Load(frames []*frame.Frame) (*runstate.State, frame.Head, error) {
	rec, err := frames[0].Record()
	if err != nil {
		return nil, frame.Head{}, err
	}
	if err := frame.VerifyChain(frames); err != nil {
		return nil, frame.Head{}, err
	}
	st := runstate.New(rec)
	head, err := applyFrames(st, frames[0].Head(), frames[1:])
	return st, head, err
}

// Continue folds the frames that follow head into the state at head. After an error the state is
// invalid. Errors: frame.ErrDamaged, also if the frames do not follow head.
func Continue(st *runstate.State, head frame.Head, frames []*frame.Frame) (frame.Head, error) {
	at := head
	for _, f := range frames {
		if err := f.Verify(); err != nil {
			return frame.Head{}, err
		}
		if f.Prev != at.Hash || f.First != at.Next || f.Kind.Begins() {
			return frame.Head{}, fmt.Errorf("%w: %s at %d: prev %q first %d, want %q and %d",
				frame.ErrDamaged, f.Run.RunID, f.Pos, f.Prev, f.First, at.Hash, at.Next)
		}
		at = f.Head()
	}
	return applyFrames(st, head, frames)
}

// applyFrames folds frames with a verified chain.
func applyFrames(st *runstate.State, head frame.Head, frames []*frame.Frame) (frame.Head, error) {
	for _, f := range frames {
		events, err := f.Events()
		if err != nil {
			return frame.Head{}, err
		}
		for _, e := range events {
			st.Apply(e)
		}
		st.Remember(wire.ParseNote(f.Note))
		owner := head.After(f)
		head = f.Head()
		head.Ownership = owner
	}
	return head, nil
}
