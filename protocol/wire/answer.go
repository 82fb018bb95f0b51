package wire

// AnswerPart places an envelope in its answer. Size is the number of envelopes in the answer, Index
// the position of this one, from 0.
type AnswerPart struct {
	// Size is how many envelopes the answer holds, and Index which of them this is, from 0.
	Size  int `json:"size"`
	Index int `json:"index"`
	// With lists the sequences of the events that record the answer's envelopes accepted before
	// this one, now or for an earlier answer.
	With []int `json:"with,omitempty"`
}

// Last reports whether this is the last part of the answer.
func (p AnswerPart) Last() bool { return p.Index >= p.Size-1 }
