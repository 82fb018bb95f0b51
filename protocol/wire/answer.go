package wire

// AnswerPart says which part of a model's answer an accepted envelope is. It stands in
// the event that records the envelope, so that whoever takes the run over after a crash
// knows whether the log has the whole answer, and takes no envelope into it of another
// answer, which was refused. An envelope that is an answer alone has none.
type AnswerPart struct {
	// Size is how many envelopes the answer holds, and Index which of them this is, from 0.
	Size  int `json:"size"`
	Index int `json:"index"`
	// With are the sequences of the events that record the envelopes of the answer which
	// were accepted before this one, whether then or for an earlier answer.
	With []int `json:"with,omitempty"`
}

// Last reports that nothing of the answer comes after this.
func (p AnswerPart) Last() bool { return p.Index >= p.Size-1 }
