package audit

import (
	"context"
	"encoding/json"
	"errors"
	"math"
)

// Anomaly is a place where the chain is broken.
type Anomaly struct {
	AtSeq            int64  `json:"atSeq"`
	ExpectedPrevHash string `json:"expectedPrevHash"`
	ActualPrevHash   string `json:"actualPrevHash"`
}

// Result is what a verification found (OpenWOP host contract §10.7).
type Result struct {
	FromSeq, ToSeq   int64
	ChainValid       bool
	CheckpointsValid bool
	Checkpoints      []Checkpoint
	Anomalies        []Anomaly
}

// Window is what is verified, both ends included; ToSeq nil: to the end.
type Window struct {
	FromSeq int64
	ToSeq   *int64
}

const (
	// noHash is what the first entry must have in place of a hash.
	noHash = "null"
	// maxAnomalies bounds what is told; the first break says that the rest is in doubt.
	maxAnomalies = 1000
)

// verifier walks a chain.
type verifier struct {
	from, to int64
	// head is the sequence that the last entry claims.
	head int64
	key  *Key
	// claims are the checkpoints of the window, by sequence.
	claims map[int64][]Checkpoint
	tip    tip
	tree   tree
	result Result
	// proven counts the checkpoints that agree with the entries.
	proven int
}

// Verify walks a tenant's log from its beginning to the window's end, for a checkpoint
// covers all that is before it. An entry that is not there is not judged, but a
// checkpoint that covers one is not valid.
func (l *Log) Verify(ctx context.Context, tenant string, w Window) (Result, error) {
	release, err := l.hold(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	v := &verifier{from: w.FromSeq, to: math.MaxInt64, key: l.key, claims: map[int64][]Checkpoint{}}
	if w.ToSeq != nil {
		v.to = *w.ToSeq
	}
	m, err := l.store.Last(ctx, List{tenant, Entries})
	if err != nil && !errors.Is(err, ErrDamaged) {
		return Result{}, unavailable(err)
	}
	v.head = -1
	if end, err := tipOf(m); err == nil {
		v.head = end.next - 1
	}
	switch err := l.store.Scan(ctx, List{tenant, Checkpoints}, 0, v.claim); {
	case errors.Is(err, ErrDamaged):
		v.claimed(unreadable(v.from))
	case err != nil:
		return Result{}, unavailable(err)
	}
	err = l.store.Scan(ctx, List{tenant, Entries}, 0, v.walk)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return Result{}, unavailable(err)
	}
	if next := v.tip.next; err != nil && next <= v.to || next <= min(v.head, v.to) { // what follows is there and is not handed out
		v.broken(next, max(next, v.from), v.expected(), "")
	}
	return v.done(w), nil
}

// unreadable stands in the place of a checkpoint that is none.
func unreadable(at int64) Checkpoint {
	return Checkpoint{ID: "unreadable", AtSequence: at, MerkleRoot: "unreadable", Signature: "unreadable"}
}

// claim takes the checkpoints of the window.
func (v *verifier) claim(m *Message) bool {
	for _, line := range m.Lines {
		var c Checkpoint
		if json.Unmarshal(line, &c) != nil {
			c = unreadable(m.First)
		}
		v.claimed(c)
	}
	return true
}

func (v *verifier) claimed(c Checkpoint) {
	if c.AtSequence >= v.from && c.AtSequence <= v.to {
		v.claims[c.AtSequence] = append(v.claims[c.AtSequence], c)
		v.result.Checkpoints = append(v.result.Checkpoints, c)
	}
}

func (v *verifier) walk(m *Message) bool {
	for i, line := range m.Lines {
		if v.tip.next > v.to {
			return false
		}
		v.step(line, m.First+int64(i))
	}
	return true
}

// step takes the next entry. Where it is stored is not what its hash covers, and is what it
// is found by.
func (v *verifier) step(line []byte, stored int64) {
	e, ok := parse(line)
	want, got := v.expected(), ""
	switch {
	case ok && e.PrevHash != nil:
		got = *e.PrevHash
	case ok && v.tip.next == 0 && hasPrevHash(line):
		got = noHash
	}
	at := v.tip.next
	if want != got || !ok || e.AtSequence != at || e.AtSequence != stored {
		v.broken(at, e.AtSequence, want, got)
		if ok && want != got && e.AtSequence > at && e.AtSequence <= v.head {
			at = e.AtSequence // entries are missing: go on behind the gap
		}
	}
	h := hash(line)
	v.tree.add(h)
	v.tip = tip{next: at + 1, hash: h}
	for _, c := range v.claims[at] {
		if c.MerkleRoot == v.tree.root() && v.key.signed(c.MerkleRoot, c.Signature) {
			v.proven++
		}
	}
}

func (v *verifier) expected() string {
	if v.tip.next == 0 {
		return noHash
	}
	return v.tip.hash
}

// hasPrevHash tells null from a member that is not there.
func hasPrevHash(line []byte) bool {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(line, &m) // it was read before
	_, has := m["prevHash"]
	return has
}

// broken notes a break at a place of the chain, where an entry stands that claims
// another.
func (v *verifier) broken(at, claimed int64, want, got string) {
	in := func(n int64) bool { return n >= v.from && n <= v.to }
	if !in(at) && in(claimed) {
		at = claimed
	}
	if !in(at) || len(v.result.Anomalies) == maxAnomalies {
		return
	}
	v.result.Anomalies = append(v.result.Anomalies, Anomaly{AtSeq: at, ExpectedPrevHash: want, ActualPrevHash: got})
}

func (v *verifier) done(w Window) Result {
	r := v.result
	r.FromSeq, r.ToSeq = w.FromSeq, max(v.tip.next-1, w.FromSeq)
	if w.ToSeq != nil {
		r.ToSeq = *w.ToSeq
	}
	r.CheckpointsValid = v.proven == len(r.Checkpoints)
	r.ChainValid = r.CheckpointsValid && len(r.Anomalies) == 0
	return r
}

// Page gives up to limit entries from a sequence on, as they are stored: each is the
// document that the next one's prevHash is the hash of. more reports that others follow.
func (l *Log) Page(ctx context.Context, tenant string, from int64, limit int) (page [][]byte, more bool, err error) {
	release, err := l.hold(ctx)
	if err != nil {
		return nil, false, err
	}
	defer release()
	err = l.store.Scan(ctx, List{tenant, Entries}, from, func(m *Message) bool {
		for i, line := range m.Lines {
			switch {
			case m.First+int64(i) < from:
			case len(page) < limit:
				page = append(page, line)
			default:
				more = true
			}
		}
		return !more
	})
	if err != nil {
		return nil, false, unavailable(err)
	}
	return page, more, nil
}
