package audit

import (
	"crypto/sha256"
	"encoding/hex"
)

// tree is a Merkle tree that grows: pairs are hashed over their concatenated lower-hex
// texts, and an odd node goes up as it is (OpenWOP host contract §10.7). It holds the
// roots of its whole subtrees only, largest first: those of the set bits of size.
type tree struct {
	Size  int64    `json:"size"`
	Peaks []string `json:"peaks"`
}

func pair(left, right string) string {
	sum := sha256.Sum256([]byte(left + right))
	return hex.EncodeToString(sum[:])
}

// add takes the hash of the next entry.
func (t *tree) add(leaf string) {
	for n := t.Size; n&1 == 1; n >>= 1 {
		last := len(t.Peaks) - 1
		leaf = pair(t.Peaks[last], leaf)
		t.Peaks = t.Peaks[:last]
	}
	t.Peaks = append(t.Peaks, leaf)
	t.Size++
}

// root is "" without an entry.
func (t *tree) root() string {
	if len(t.Peaks) == 0 {
		return ""
	}
	root := t.Peaks[len(t.Peaks)-1]
	for i := len(t.Peaks) - 2; i >= 0; i-- {
		root = pair(t.Peaks[i], root)
	}
	return root
}
