package wire

import "encoding/json"

// Note holds state of a run that no event expresses, because the protocol has none for it: a pause
// that waits for a node, a cancellation that waits for children, and votes or questions at a gate
// that they do not decide (OpenWOP host contract §2.5, §2.7, §6.2, §6.3). It is stored in a frame's
// header, for the next dispatcher of the run.
type Note struct {
	Pause *PauseNote `json:"pause,omitempty"`
	// Unpause withdraws a pause that has not taken effect.
	Unpause bool        `json:"unpause,omitempty"`
	Cancel  *CancelNote `json:"cancel,omitempty"`
	// Said is a vote or a question at an interrupt that stays open, as package interrupt encodes
	// it.
	Said json.RawMessage `json:"said,omitempty"`
	// Held are running nodes whose effect has not begun: the call was certainly not sent. The next
	// dispatcher starts them as if for the first time.
	Held []string `json:"held,omitempty"`
	// Begun are held nodes whose effect a dispatcher starts now.
	Begun []string `json:"begun,omitempty"`
}

// Empty reports whether the note holds nothing.
func (n Note) Empty() bool { return n.IDsOnly() && !n.Unpause && len(n.Held)+len(n.Begun) == 0 }

// IDsOnly reports whether the note holds only node ids, which are not secret.
func (n Note) IDsOnly() bool { return n.Pause == nil && n.Cancel == nil && len(n.Said) == 0 }

// PauseNote requests a pause as soon as no node of the run is running.
type PauseNote struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	At     string `json:"at"`
}

// CancelNote requests the end of a run; its members go into run.cancelled.
type CancelNote struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// ParentRunID is the run whose cancellation caused this one; empty if none.
	ParentRunID string `json:"parentRunId,omitempty"`
}

// ReasonParentCancelled is the reason of every run that is cancelled with its parent
// (OpenWOP host contract §3.4).
const ReasonParentCancelled = "parent-cancelled"

// JSON returns the note on one line.
func (n Note) JSON() string {
	b, err := json.Marshal(n)
	if err != nil { // Said is JSON
		panic("wire: a note is not JSON: " + err.Error())
	}
	return string(b)
}

// ParseNote reads the note of a frame; empty if it is invalid.
func ParseNote(s string) Note {
	var n Note
	if s != "" {
		_ = json.Unmarshal([]byte(s), &n)
	}
	return n
}
