package interrupt

import "slices"

// Action is an action of an approval.
type Action string

// The actions of the protocol (OpenWOP host contract §6.2), and timeout, which only events have.
const (
	Accept     Action = "accept"
	Reject     Action = "reject"
	Refine     Action = "refine"
	EditAccept Action = "edit-accept"
	Ask        Action = "ask"
	TimedOut   Action = "timeout"
)

// Vote is one vote of a quorum.
type Vote struct {
	// Voter identifies the voter; empty if unknown, the vote counts separately.
	Voter  string `json:"voter,omitempty"`
	Action Action `json:"action"`
	// By is the credential, At the time of the vote.
	By string `json:"by"`
	At string `json:"at"`
	// Standing is why the voter was eligible then; nil means the gate was open to all.
	Standing *Standing `json:"standing,omitempty"`
}

// Votes are the votes of a quorum, in the order of arrival.
type Votes []Vote

// With returns the votes with v added. It replaces an earlier vote of the same voter (OpenWOP
// host contract §6.3).
func (vs Votes) With(v Vote) Votes {
	out := slices.DeleteFunc(slices.Clone(vs), func(old Vote) bool { return v.Voter != "" && old.Voter == v.Voter })
	return append(out, v)
}

// Policy determines how many rejections end a quorum.
type Policy string

// The policies.
const (
	SingleVeto Policy = "single-veto"
	Majority   Policy = "majority"
)

// Quorum defines how many votes decide.
type Quorum struct {
	// Required is the number of approvals that continue the run.
	Required int
	// Policy is SingleVeto unless it is Majority.
	Policy Policy
	// Bypassed: an override decides alone. Otherwise it counts as one vote.
	Bypassed bool
}

// Rejections returns how many rejections end the quorum.
func (q Quorum) Rejections() int {
	if q.Policy == Majority {
		return q.Required/2 + 1
	}
	return 1
}

// Progress is the current vote count.
type Progress struct {
	Accepts  int `json:"accepts"`
	Rejects  int `json:"rejects"`
	Required int `json:"required"`
}

// Count counts votes. A refine counts as a rejection of the present version.
func (q Quorum) Count(vs Votes) Progress {
	p := Progress{Required: q.Required}
	for _, v := range vs {
		switch v.Action {
		case Accept, EditAccept:
			p.Accepts++
		case Reject, Refine:
			p.Rejects++
		}
	}
	return p
}

// Settle returns the outcome of the votes; Counted means undecided. Enough rejections fail the
// gate, unless all of them are refine.
func (q Quorum) Settle(vs Votes) Outcome {
	p := q.Count(vs)
	switch {
	case p.Accepts >= q.Required:
		return Advanced
	case p.Rejects < q.Rejections():
		return Counted
	case slices.ContainsFunc(vs, func(v Vote) bool { return v.Action == Reject }):
		return Rejected
	}
	return Refined
}
