package interrupt_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
)

func threeApprovals(policy string) string {
	return `{"title":"T","actions":["accept","reject","refine","ask"],"requiredApprovals":3,"rejectionPolicy":"` + policy + `","approversList":[]}`
}

// OpenWOP host contract §6.3: partial votes, the accept that decides, both policies.
func TestDecide_CountsVotes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		policy string
		votes  []string // of one credential, in order
		want   []interrupt.Outcome
		final  interrupt.Progress
	}{
		"the third accept": {
			"majority",
			[]string{"a accept", "b accept", "c accept"},
			[]interrupt.Outcome{interrupt.Counted, interrupt.Counted, interrupt.Advanced},
			interrupt.Progress{Accepts: 3, Required: 3},
		},
		"a majority against": {
			"majority",
			[]string{"a reject", "b accept", "c reject"},
			[]interrupt.Outcome{interrupt.Counted, interrupt.Counted, interrupt.Rejected},
			interrupt.Progress{Accepts: 1, Rejects: 2, Required: 3},
		},
		"one veto": {
			"single-veto",
			[]string{"a accept", "b reject"},
			[]interrupt.Outcome{interrupt.Counted, interrupt.Rejected},
			interrupt.Progress{Accepts: 1, Rejects: 1, Required: 3},
		},
		"first is one veto": {
			"first", []string{"a reject"}, []interrupt.Outcome{interrupt.Rejected}, interrupt.Progress{Rejects: 1, Required: 3},
		},
		"a voter changes their mind": {
			"majority",
			[]string{"a reject", "a accept", "a accept", "b accept", "c reject", "d accept"},
			[]interrupt.Outcome{interrupt.Counted, interrupt.Counted, interrupt.Counted, interrupt.Counted, interrupt.Counted, interrupt.Advanced},
			interrupt.Progress{Accepts: 3, Rejects: 1, Required: 3},
		},
		"votes without a voter add up": {
			"majority",
			[]string{" accept", " accept", " accept"},
			[]interrupt.Outcome{interrupt.Counted, interrupt.Counted, interrupt.Advanced},
			interrupt.Progress{Accepts: 3, Required: 3},
		},
		"all ask for a refinement": {
			"majority", []string{"a refine", "b refine"}, []interrupt.Outcome{interrupt.Counted, interrupt.Refined}, interrupt.Progress{Rejects: 2, Required: 3},
		},
		"one rejects, the others ask for a refinement": {
			"majority", []string{"a reject", "b refine"}, []interrupt.Outcome{interrupt.Counted, interrupt.Rejected}, interrupt.Progress{Rejects: 2, Required: 3},
		},
	} {
		p := gate(t, threeApprovals(tc.policy))
		for i, v := range tc.votes {
			d := decide(t, p, by(key, vote(v)))
			require.Equal(t, tc.want[i], d.Outcome, "%s, no. %d", name, i)
			if i == len(tc.votes)-1 {
				require.Equal(t, tc.final, *d.Progress, name)
				requireDecided(t, p, d)
				break
			}
			require.Nil(t, d.Resume, name)
			require.Empty(t, d.Events, "a vote is not an event")
			p.AddNote(overTheWire(t, *d.Note))
		}
	}
}

// requireDecided checks the result of a decided quorum, which equals that of any gate.
func requireDecided(t *testing.T, p *interrupt.Pending, d interrupt.Decision) {
	t.Helper()
	action := map[interrupt.Outcome]interrupt.Action{interrupt.Advanced: interrupt.Accept, interrupt.Rejected: interrupt.Reject, interrupt.Refined: interrupt.Refine}[d.Outcome]
	require.Equal(t, action, d.Action)
	require.Contains(t, payload(t, d.Events, wire.EventApprovalReceived), `"action":"`+string(action)+`"`)
	require.Contains(t, string(d.Resume), `"action":"`+string(action)+`"`)
	require.Nil(t, d.Note)
	if d.Outcome == interrupt.Rejected {
		require.Equal(t, "interrupt_rejected", d.Failure.Code)
		require.Equal(t, p.InterruptID, d.Failure.Details["interruptId"])
	}
}

// vote returns the value for "voter action"; an empty voter is omitted.
func vote(s string) string {
	i := slices.Index([]byte(s), ' ')
	voter, action := s[:i], s[i+1:]
	m := map[string]any{"action": action}
	if voter != "" {
		m["voter"] = voter
	}
	if action == "refine" {
		m["refineFeedback"] = map[string]string{"scope": "whole"}
	}
	b, _ := json.Marshal(m) // texts
	return string(b)
}

// overTheWire returns a note after a JSON round trip, as a run stores it.
func overTheWire(t testing.TB, n interrupt.Note) (out interrupt.Note) {
	t.Helper()
	b, err := json.Marshal(n)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// OpenWOP host contract §6.3: a bound user overrides voter.
func TestDecide_OneUserIsOneVote(t *testing.T) {
	t.Parallel()
	p := gate(t, threeApprovals("majority"))
	ada := interrupt.Responder{Principal: "key-1", User: "ada"}
	for _, claimed := range []string{"ada", "bob", "cy", ""} {
		d := decide(t, p, by(ada, vote(claimed+" accept")))
		require.Equal(t, interrupt.Counted, d.Outcome)
		require.Equal(t, interrupt.Progress{Accepts: 1, Required: 3}, *d.Progress)
		p.AddNote(*d.Note)
	}
	require.Len(t, p.Votes, 1)
	require.Equal(t, interrupt.Vote{Voter: "ada", Action: interrupt.Accept, By: "key-1", At: "2026-05-01T12:01:00.000Z"}, p.Votes[0])
}

func TestDecide_QuorumRejectsIneligibleVoters(t *testing.T) {
	t.Parallel()
	p := gate(t, `{"title":"T","actions":["accept","reject","ask"],"requiredApprovals":2,"approversList":["a","b"]}`)
	for _, v := range []string{"c accept", "c reject", " accept"} {
		_, err := interrupt.Decide(p, by(key, vote(v)))
		require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	}
	_, err := interrupt.Decide(p, by(key, `{"action":"ask","question":"q","voter":"c"}`))
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
}

func TestAddNote_IgnoresOtherInterrupts(t *testing.T) {
	t.Parallel()
	p := gate(t, threeApprovals("majority"))
	d := decide(t, p, by(key, vote("a accept")))
	other := *d.Note
	other.InterruptID = "int_other"
	p.AddNote(other)
	require.Empty(t, p.Votes)
	p.AddNote(*d.Note)
	p.AddNote(*d.Note)
	require.Len(t, p.Votes, 1, "a repeated note is the same vote")
}

func drawVotes(t *rapid.T) interrupt.Votes {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) interrupt.Vote {
		return interrupt.Vote{
			Voter:  rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "voter"),
			Action: rapid.SampledFrom([]interrupt.Action{interrupt.Accept, interrupt.Reject, interrupt.Refine}).Draw(t, "action"),
		}
	}), 0, 12).Draw(t, "votes")
}

func drawQuorum(t *rapid.T) interrupt.Quorum {
	return interrupt.Quorum{
		Required: rapid.IntRange(1, 6).Draw(t, "required"),
		Policy:   rapid.SampledFrom([]interrupt.Policy{interrupt.SingleVeto, interrupt.Majority}).Draw(t, "policy"),
	}
}

func TestVotes_OnlyTheLastOfEachVoterCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cast := drawVotes(t)
		var vs interrupt.Votes
		last := map[string]interrupt.Action{}
		nobodys := 0
		for _, v := range cast {
			before := slices.Clone(vs)
			next := vs.With(v)
			require.Equal(t, before, vs, "the original votes are unchanged")
			vs = next
			last[v.Voter] = v.Action
			if v.Voter == "" {
				nobodys++
			}
		}
		delete(last, "")
		require.Len(t, vs, len(last)+nobodys)
		for _, v := range vs {
			if v.Voter != "" {
				require.Equal(t, last[v.Voter], v.Action)
			}
		}
		q := drawQuorum(t)
		p := q.Count(vs)
		require.Equal(t, len(vs), p.Accepts+p.Rejects, "every vote counts once")
	})
}

func TestQuorum_TheOrderOfVotesDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var vs interrupt.Votes
		for _, v := range drawVotes(t) {
			vs = vs.With(v)
		}
		q := drawQuorum(t)
		shuffled := rapid.Permutation(vs).Draw(t, "order")
		require.Equal(t, q.Settle(vs), q.Settle(shuffled))
		require.Equal(t, q.Count(vs), q.Count(shuffled))
	})
}

// A gate closes once: with the vote that reaches a threshold, and not earlier.
func TestQuorum_EndsWithTheVoteThatReachesAThreshold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuorum(t)
		p := pendingQuorum(q)
		resolutions := 0
		for i, v := range drawVotes(t) {
			d, err := interrupt.Decide(p, by(key, vote(v.Voter+" "+string(v.Action))))
			require.NoError(t, err)
			progress := q.Count(p.Votes.With(v))
			reached := progress.Accepts >= q.Required || progress.Rejects >= q.Rejections()
			require.Equal(t, reached, d.Outcome.Resolves(), "no. %d", i)
			if d.Outcome.Resolves() {
				resolutions++
				require.Equal(t, progress.Accepts >= q.Required, d.Outcome == interrupt.Advanced)
				break // the run records it and accepts no further answer
			}
			p.AddNote(*d.Note)
		}
		require.LessOrEqual(t, resolutions, 1)
		final := q.Settle(p.Votes)
		require.Equal(t, interrupt.Counted, final, "recorded votes alone never resolve a gate")
	})
}

func pendingQuorum(q interrupt.Quorum) *interrupt.Pending {
	config := fmt.Sprintf(`{"title":"T","actions":["accept","reject","refine"],"requiredApprovals":%d,"rejectionPolicy":%q}`, q.Required, q.Policy)
	r, _ := interrupt.From(interrupt.TypeApprovalGate, at, json.RawMessage(config))
	p, _ := interrupt.Open(at, r, now, "")
	return p
}

// Folding the notes again, at any time, yields the same decision on the next vote.
func TestQuorum_FoldingAgainYieldsTheSameDecision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuorum(t)
		p, again := pendingQuorum(q), pendingQuorum(q)
		for _, v := range drawVotes(t) {
			a := by(key, vote(v.Voter+" "+string(v.Action)))
			d, err := interrupt.Decide(p, a)
			require.NoError(t, err)
			same, err := interrupt.Decide(again, a)
			require.NoError(t, err)
			require.Equal(t, d, same)
			if d.Outcome.Resolves() {
				return
			}
			p.AddNote(*d.Note)
			b, err := json.Marshal(p)
			require.NoError(t, err)
			again = &interrupt.Pending{}
			require.NoError(t, json.Unmarshal(b, again))
		}
	})
}
