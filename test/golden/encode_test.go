package golden

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
)

// A state encoded after any event and decoded again folds to the same final state.
func TestEncode_FoldsContinueFromAnyEvent(t *testing.T) {
	t.Parallel()
	for _, file := range recordings(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, events, _ := load(t, file)
			whole, st := runstate.Fold(rec, events), runstate.New(rec)
			for k := 0; ; k++ {
				b, err := st.Encode()
				require.NoError(t, err)
				got, err := runstate.Decode(rec, b)
				require.NoError(t, err)
				require.Equal(t, st, got, "after %d events", k)
				for _, e := range events[k:] {
					got.Apply(e)
				}
				require.Equal(t, whole, got, "after %d events", k)
				if k == len(events) {
					break
				}
				st.Apply(events[k])
			}
		})
	}
}

// folds is the digest of all encoded states of the corpus at foldsVersion.
const (
	foldsVersion = 4
	folds        = "975305fb30fa76bfda21dbb6e90e6bb76effece2d8929962b6b3271d79118c9c"
)

// A build that folds or encodes differently must not use the encoded states of this one. If this
// fails after a change of the fold or its encoding, raise runstate.FoldVersion and update both
// values here. If it fails after `make gen ONLY=golden` alone, update the digest.
func TestEncode_OtherFoldsHaveAnotherVersion(t *testing.T) {
	t.Parallel()
	h := sha256.New()
	for _, file := range recordings(t) {
		rec, events, _ := load(t, file)
		st := runstate.New(rec)
		for _, e := range events {
			st.Apply(e)
			b, err := st.Encode()
			require.NoError(t, err)
			h.Write(b)
		}
	}
	require.Equal(t, foldsVersion, runstate.FoldVersion)
	require.Equal(t, folds, hex.EncodeToString(h.Sum(nil)))
}
