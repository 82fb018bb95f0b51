package frame

import (
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Erasure is the body of a frame of kind erase: the positions of the run's frames that are removed
// from the log. Readers of positions do not report them as lost.
type Erasure struct {
	// Positions are ranges of positions in order, both ends included.
	Positions [][2]uint64 `json:"positions"`
	// Cause is why the run was erased.
	Cause Cause `json:"cause,omitempty"`
}

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
	e := Erasure{Cause: cause}
	for _, p := range positions {
		if n := len(e.Positions); n > 0 && e.Positions[n-1][1]+1 == p {
			e.Positions[n-1][1] = p
			continue
		}
		e.Positions = append(e.Positions, [2]uint64{p, p})
	}
	body, err := json.Marshal(e)
	if err != nil {
		panic(err) // numbers are always rendered
	}
	f := &Frame{
		Run: run, Kind: subject.Erase, First: head.Next, Last: head.Next - 1,
		Trust: wire.Trusted, Prev: head.Hash, Body: body,
	}
	f.Hash = f.sum()
	return f
}

// Erasure reads the body of a frame of kind erase.
func (f *Frame) Erasure() (Erasure, error) {
	var e Erasure
	if f.Kind != subject.Erase {
		return e, fmt.Errorf("frame of run %s at %d is %s, not %s", f.Run.RunID, f.Pos, f.Kind, subject.Erase)
	}
	if err := json.Unmarshal(f.Body, &e); err != nil {
		return e, fmt.Errorf("%w: erasure of run %s at %d: %w", ErrDamaged, f.Run.RunID, f.Pos, err)
	}
	last := uint64(0)
	for _, r := range e.Positions {
		if r[0] <= last || r[1] < r[0] {
			return e, fmt.Errorf("%w: erasure of run %s at %d: positions %d to %d", ErrDamaged, f.Run.RunID, f.Pos, r[0], r[1])
		}
		last = r[1]
	}
	return e, nil
}

// Count returns the number of removed frames.
func (e Erasure) Count() (n uint64) {
	for _, r := range e.Positions {
		n += r[1] - r[0] + 1
	}
	return n
}
