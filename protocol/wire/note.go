package wire

import "encoding/json"

// Note is what a run's log remembers without an event, because the protocol has none
// for it: a pause that waits for a node to end, a cancellation that waits for children to
// end, and what was said at a gate that is not decided by it (OpenWOP host contract §2.5,
// §2.7, §6.2, §6.3). It stands in the header of a frame, so that whoever takes the run
// over knows of it.
type Note struct {
	Pause  *PauseNote  `json:"pause,omitempty"`
	Cancel *CancelNote `json:"cancel,omitempty"`
	// Said is a vote or a question at an interrupt that stays open, as package interrupt
	// writes it.
	Said json.RawMessage `json:"said,omitempty"`
	// Held are running nodes whose effect has not begun: the call was surely not sent. The
	// next dispatcher begins it as if for the first time.
	Held []string `json:"held,omitempty"`
	// Begun are held nodes whose effect a dispatcher begins now.
	Begun []string `json:"begun,omitempty"`
}

// Empty reports whether the note says nothing.
func (n Note) Empty() bool { return n.IDsOnly() && len(n.Held)+len(n.Begun) == 0 }

// IDsOnly reports whether the note has nothing but ids of nodes, which hold no secret.
func (n Note) IDsOnly() bool { return n.Pause == nil && n.Cancel == nil && len(n.Said) == 0 }

// PauseNote asks for a pause as soon as nothing of the run is at work.
type PauseNote struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	At     string `json:"at"`
}

// CancelNote asks for the end of a run, and says what run.cancelled is to tell.
type CancelNote struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// ParentRunID is the run whose cancellation this one follows from; empty: none.
	ParentRunID string `json:"parentRunId,omitempty"`
}

// ReasonParentCancelled is the reason of every run that is cancelled with its parent
// (OpenWOP host contract §3.4).
const ReasonParentCancelled = "parent-cancelled"

// JSON is the note on one line.
func (n Note) JSON() string {
	b, err := json.Marshal(n)
	if err != nil { // Said is JSON
		panic("wire: a note is not JSON: " + err.Error())
	}
	return string(b)
}

// ParseNote reads the note of a frame; what cannot be read says nothing.
func ParseNote(s string) Note {
	var n Note
	if s != "" {
		_ = json.Unmarshal([]byte(s), &n)
	}
	return n
}
