package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"math/bits"
)

// tree is an append-only Merkle tree. Pairs are hashed over their concatenated lower-case
// hex texts, and an odd node is promoted unchanged (OpenWOP host contract §10.7). It stores
// only the roots of its complete subtrees, largest first: one per set bit of Size.
type tree struct {
	Size  int64    `json:"size"`
	Peaks []string `json:"peaks"`
}

func hashPair(left, right string) string {
	sum := sha256.Sum256([]byte(left + right))
	return hex.EncodeToString(sum[:])
}

// add adds the hash of the next entry.
func (t *tree) add(leaf string) {
	for n := t.Size; n&1 == 1; n >>= 1 {
		last := len(t.Peaks) - 1
		leaf = hashPair(t.Peaks[last], leaf)
		t.Peaks = t.Peaks[:last]
	}
	t.Peaks = append(t.Peaks, leaf)
	t.Size++
}

// sound reports whether a tree that was read has the form of one, which add relies on.
func (t *tree) sound() bool {
	for _, p := range t.Peaks {
		if b, err := hex.DecodeString(p); err != nil || len(b) != sha256.Size {
			return false
		}
	}
	return t.Size >= 0 && bits.OnesCount64(uint64(t.Size)) == len(t.Peaks) //nolint:gosec // G115: not negative
}

// root returns the root in hex, "" for an empty tree.
func (t *tree) root() string {
	if len(t.Peaks) == 0 {
		return ""
	}
	root := t.Peaks[len(t.Peaks)-1]
	for i := len(t.Peaks) - 2; i >= 0; i-- {
		root = hashPair(t.Peaks[i], root)
	}
	return root
}
