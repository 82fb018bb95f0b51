package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// level by level, as in the contract: pairs are hashed, and an odd leaf is promoted.
func rootByLevels(leaves []string) string {
	for len(leaves) > 1 {
		var up []string
		for i := 0; i < len(leaves); i += 2 {
			if i+1 == len(leaves) {
				up = append(up, leaves[i])
				continue
			}
			sum := sha256.Sum256([]byte(leaves[i] + leaves[i+1]))
			up = append(up, hex.EncodeToString(sum[:]))
		}
		leaves = up
	}
	return leaves[0]
}

func TestTree_GrowsToTheRootOfAllLeaves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var grown tree
		var leaves []string
		for i := range rapid.IntRange(1, 300).Draw(t, "leaves") {
			leaves = append(leaves, hash(fmt.Append(nil, i)))
			grown.add(leaves[i])
		}
		require.Equal(t, rootByLevels(leaves), grown.root())
		require.EqualValues(t, len(leaves), grown.Size)
	})
}

func TestTree_OfNothingHasNoRoot(t *testing.T) {
	t.Parallel()
	require.Empty(t, (&tree{}).root())
}
