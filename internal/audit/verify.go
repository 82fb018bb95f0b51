package audit

import (
	"context"
	"encoding/json"
	"errors"
	"math"
)

// Anomaly is a break of the chain.
type Anomaly struct {
	AtSeq            int64  `json:"atSeq"`
	ExpectedPrevHash string `json:"expectedPrevHash"`
	ActualPrevHash   string `json:"actualPrevHash"`
}

// Result is the result of a verification (OpenWOP host contract §10.7).
type Result struct {
	FromSeq, ToSeq   int64
	ChainValid       bool
	CheckpointsValid bool
	Checkpoints      []Checkpoint
	Anomalies        []Anomaly
}

// Window is the range to verify, both ends included; ToSeq nil means the end of the log.
type Window struct {
	FromSeq int64
	ToSeq   *int64
}

const (
	// noHash is the expected prevHash of the first entry.
	noHash = "null"
	// maxAnomalies limits the reported breaks. After the first one the rest is in doubt
	// anyway.
	maxAnomalies = 1000
)

// verifier verifies a chain.
type verifier struct {
	from, to int64
	// claimedHead is the sequence that the last entry claims.
	claimedHead int64
	key         *Key
	// checkpoints are the checkpoints of the window, by sequence.
	checkpoints map[int64][]Checkpoint
	tip         tip
	tree        tree
	result      Result
	// validCheckpoints counts the checkpoints that agree with the entries.
	validCheckpoints int
}

// Verify reads a tenant's log from its start to the end of the window, since a checkpoint
// covers all earlier entries. A missing entry at the end of the log is not an anomaly, but
// a checkpoint that covers it is invalid.
func (l *Log) Verify(ctx context.Context, tenant string, w Window) (Result, error) {
	release, err := l.acquireReader(ctx)
	if err != nil {
		return Result{}, err
	}
	defer release()
	v := &verifier{from: w.FromSeq, to: math.MaxInt64, key: l.key, checkpoints: map[int64][]Checkpoint{}}
	if w.ToSeq != nil {
		v.to = *w.ToSeq
	}
	m, err := l.store.Last(ctx, List{tenant, Entries})
	if err != nil && !errors.Is(err, ErrDamaged) {
		return Result{}, unavailable(err)
	}
	v.claimedHead = -1
	if end, err := tipOf(m); err == nil {
		v.claimedHead = end.next - 1
	}
	switch err := l.store.Scan(ctx, List{tenant, Checkpoints}, 0, v.readCheckpoints); {
	case errors.Is(err, ErrDamaged):
		v.addCheckpoint(unreadable(v.from))
	case err != nil:
		return Result{}, unavailable(err)
	}
	err = l.store.Scan(ctx, List{tenant, Entries}, 0, v.readEntries)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return Result{}, unavailable(err)
	}
	if next := v.tip.next; err != nil && next <= v.to || next <= min(v.claimedHead, v.to) { // later entries exist but cannot be read
		v.addAnomaly(next, max(next, v.from), v.expectedPrevHash(), "")
	}
	return v.finish(w), nil
}

// unreadable replaces an invalid checkpoint.
func unreadable(at int64) Checkpoint {
	return Checkpoint{ID: "unreadable", AtSequence: at, MerkleRoot: "unreadable", Signature: "unreadable"}
}

// readCheckpoints reads the checkpoints of the window.
func (v *verifier) readCheckpoints(m *Message) bool {
	for _, line := range m.Lines {
		var c Checkpoint
		if json.Unmarshal(line, &c) != nil {
			c = unreadable(m.First)
		}
		v.addCheckpoint(c)
	}
	return true
}

func (v *verifier) addCheckpoint(c Checkpoint) {
	if c.AtSequence >= v.from && c.AtSequence <= v.to {
		v.checkpoints[c.AtSequence] = append(v.checkpoints[c.AtSequence], c)
		v.result.Checkpoints = append(v.result.Checkpoints, c)
	}
}

func (v *verifier) readEntries(m *Message) bool {
	for i, line := range m.Lines {
		if v.tip.next > v.to {
			return false
		}
		v.checkEntry(line, m.First+int64(i))
	}
	return true
}

// checkEntry checks the next entry. Its stored sequence is checked too: the hash does not
// cover it, but readers find entries by it.
func (v *verifier) checkEntry(line []byte, stored int64) {
	e, ok := parse(line)
	want, got := v.expectedPrevHash(), ""
	switch {
	case ok && e.PrevHash != nil:
		got = *e.PrevHash
	case ok && v.tip.next == 0 && hasPrevHash(line):
		got = noHash
	}
	at := v.tip.next
	if want != got || !ok || e.AtSequence != at || e.AtSequence != stored {
		v.addAnomaly(at, e.AtSequence, want, got)
		if ok && want != got && e.AtSequence > at && e.AtSequence <= v.claimedHead {
			at = e.AtSequence // entries are missing: continue after the gap
		}
	}
	h := hash(line)
	v.tree.add(h)
	v.tip = tip{next: at + 1, hash: h}
	for _, c := range v.checkpoints[at] {
		if c.MerkleRoot == v.tree.root() && v.key.verify(c.MerkleRoot, c.Signature) {
			v.validCheckpoints++
		}
	}
}

func (v *verifier) expectedPrevHash() string {
	if v.tip.next == 0 {
		return noHash
	}
	return v.tip.hash
}

// hasPrevHash distinguishes null from an absent member.
func hasPrevHash(line []byte) bool {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(line, &m) // parsed before
	_, has := m["prevHash"]
	return has
}

// addAnomaly adds a break at sequence at, whose entry claims the sequence claimed.
func (v *verifier) addAnomaly(at, claimed int64, want, got string) {
	in := func(n int64) bool { return n >= v.from && n <= v.to }
	if !in(at) && in(claimed) {
		at = claimed
	}
	if !in(at) || len(v.result.Anomalies) == maxAnomalies {
		return
	}
	v.result.Anomalies = append(v.result.Anomalies, Anomaly{AtSeq: at, ExpectedPrevHash: want, ActualPrevHash: got})
}

func (v *verifier) finish(w Window) Result {
	r := v.result
	r.FromSeq, r.ToSeq = w.FromSeq, max(v.tip.next-1, w.FromSeq)
	if w.ToSeq != nil {
		r.ToSeq = *w.ToSeq
	}
	r.CheckpointsValid = v.validCheckpoints == len(r.Checkpoints)
	r.ChainValid = r.CheckpointsValid && len(r.Anomalies) == 0
	return r
}

// End returns the sequence after a tenant's last entry; 0 without entries.
func (l *Log) End(ctx context.Context, tenant string) (int64, error) {
	m, err := l.store.Last(ctx, List{tenant, Entries})
	if err != nil {
		return 0, unavailable(err)
	}
	if m == nil {
		return 0, nil
	}
	return m.First + int64(len(m.Lines)), nil
}

// Page returns up to limit stored entries from a sequence on. The prevHash of an entry is
// the hash of the previous stored document. more reports that others follow.
func (l *Log) Page(ctx context.Context, tenant string, from int64, limit int) (page [][]byte, more bool, err error) {
	release, err := l.acquireReader(ctx)
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
