package interrupt

import "slices"

// Action is what somebody does at an approval.
type Action string

// The actions of the protocol (OpenWOP host contract §6.2), and the one that only an
// event has.
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
	// Voter is whose vote it is; empty: nobody said, and it stands for itself.
	Voter  string `json:"voter,omitempty"`
	Action Action `json:"action"`
	// By is the credential it came with, At when.
	By string `json:"by"`
	At string `json:"at"`
	// Standing is by what they could vote then; nil: anybody could.
	Standing *Standing `json:"standing,omitempty"`
}

// Votes are those of a quorum, in the order in which they came.
type Votes []Vote

// With gives the votes with one more; the same voter's replaces what they voted before
// (OpenWOP host contract §6.3).
func (vs Votes) With(v Vote) Votes {
	out := slices.DeleteFunc(slices.Clone(vs), func(old Vote) bool { return v.Voter != "" && old.Voter == v.Voter })
	return append(out, v)
}

// Policy says how many votes against it take.
type Policy string

// The policies.
const (
	SingleVeto Policy = "single-veto"
	Majority   Policy = "majority"
)

// Quorum is how many votes it takes.
type Quorum struct {
	// Required are the approvals that let the run go on.
	Required int
	// Policy is SingleVeto unless it is Majority.
	Policy Policy
	// Bypassed: an override is all that it takes. Else it is one vote.
	Bypassed bool
}

// Against is how many votes against it end it.
func (q Quorum) Against() int {
	if q.Policy == Majority {
		return q.Required/2 + 1
	}
	return 1
}

// Progress is how far the votes are.
type Progress struct {
	Accepts  int `json:"accepts"`
	Rejects  int `json:"rejects"`
	Required int `json:"required"`
}

// Count counts votes. Who wants it refined does not want it as it is: a vote against.
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

// Settle says what votes come to; Counted: nothing yet. Enough votes against fail the
// gate, unless all of them ask for something better.
func (q Quorum) Settle(vs Votes) Outcome {
	p := q.Count(vs)
	switch {
	case p.Accepts >= q.Required:
		return Advanced
	case p.Rejects < q.Against():
		return Counted
	case slices.ContainsFunc(vs, func(v Vote) bool { return v.Action == Reject }):
		return Rejected
	}
	return Refined
}
