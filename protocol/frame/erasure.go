package frame

import (
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Erasure is the body of a frame of kind erase: the positions of the run's frames that are removed
// from the log. Readers of positions do not report them as lost. Of a sealed run, the frame of kind
// seal lists them.
type Erasure struct {
	// Positions are ranges of positions in order, both ends included.
	Positions Positions `json:"positions"`
	// Cause is why the run was erased.
	Cause Cause `json:"cause,omitempty"`
}

// Sealing is the body of a frame of kind seal: the positions of the run's frames, which are in the cold
// store and are removed from the log. Readers of positions do not report them as lost.
type Sealing struct {
	Positions Positions `json:"positions"`
}

// Positions are ranges of positions of the log in order, both ends included.
type Positions [][2]uint64

// Cause is why a run was erased.
type Cause string

// The causes of an erasure. The bytes of a requested one are overwritten.
const (
	Requested Cause = ""
	Expired   Cause = "expired" // its retention is over
)

// NewErase returns the frame that erases a run. head is the end of the run's log, positions are those
// of all its frames, in order.
func NewErase(run subject.Run, head Head, positions []uint64, cause Cause) *Frame {
	return newMark(run, subject.Erase, head, Erasure{ranges(positions), cause})
}

// NewSeal returns the frame that seals a run. head and positions are as for NewErase.
func NewSeal(run subject.Run, head Head, positions []uint64) *Frame {
	return newMark(run, subject.Seal, head, Sealing{ranges(positions)})
}

func newMark(run subject.Run, kind subject.Kind, head Head, content any) *Frame {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // numbers are always rendered
	}
	f := &Frame{
		Run: run, Kind: kind, First: head.Next, Last: head.Next - 1,
		Trust: wire.Trusted, Prev: head.Hash, Body: body,
	}
	f.Hash = f.sum()
	return f
}

func ranges(positions []uint64) Positions {
	out := Positions{}
	for _, p := range positions {
		if n := len(out); n > 0 && out[n-1][1]+1 == p {
			out[n-1][1] = p
			continue
		}
		out = append(out, [2]uint64{p, p})
	}
	return out
}

// Erasure reads the body of a frame of kind erase.
func (f *Frame) Erasure() (Erasure, error) {
	var e Erasure
	err := f.mark(subject.Erase, &e)
	if err == nil {
		err = f.inOrder(e.Positions)
	}
	return e, err
}

// Sealing reads the body of a frame of kind seal.
func (f *Frame) Sealing() (Sealing, error) {
	var s Sealing
	err := f.mark(subject.Seal, &s)
	if err == nil {
		err = f.inOrder(s.Positions)
	}
	return s, err
}

// Removed returns the positions that a frame of kind seal or erase lists.
func (f *Frame) Removed() (Positions, error) {
	if f.Kind == subject.Seal {
		s, err := f.Sealing()
		return s.Positions, err
	}
	e, err := f.Erasure()
	return e.Positions, err
}

func (f *Frame) mark(want subject.Kind, into any) error {
	if f.Kind != want {
		return fmt.Errorf("frame of run %s at %d is %s, not %s", f.Run.RunID, f.Pos, f.Kind, want)
	}
	if err := json.Unmarshal(f.Body, into); err != nil {
		return fmt.Errorf("%w: %s of run %s at %d: %w", ErrDamaged, want, f.Run.RunID, f.Pos, err)
	}
	return nil
}

func (f *Frame) inOrder(positions Positions) error {
	last := uint64(0)
	for _, r := range positions {
		if r[0] <= last || r[1] < r[0] {
			return fmt.Errorf("%w: %s of run %s at %d: positions %d to %d", ErrDamaged, f.Kind, f.Run.RunID, f.Pos, r[0], r[1])
		}
		last = r[1]
	}
	return nil
}

// Count returns the number of positions.
func (p Positions) Count() (n uint64) {
	for _, r := range p {
		n += r[1] - r[0] + 1
	}
	return n
}

// Last returns the last position; 0 if there is none.
func (p Positions) Last() uint64 {
	if len(p) == 0 {
		return 0
	}
	return p[len(p)-1][1]
}
