package journal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
)

func TestLate_FindsAnOwnerThatWritesAfterItsSuccessor(t *testing.T) {
	t.Parallel()
	for writers, want := range map[string][]string{
		"a-1@1 a-1@1 b-1@2 b-1@2":    nil,
		"a-1@1 acceptor a-1@1 b-1@2": nil, // other writers do not own the run
		"a-1@1 b-1@2 a-2@3":          nil, // claimed again
		"a-1@1 b-1@2 a-1@1":          {"a-1@1"},
		"a-1@1 b-1@2 c-1@3 b-1@2":    {"b-1@2"},
	} {
		var frames []*frame.Frame
		for w := range strings.FieldsSeq(writers) {
			frames = append(frames, &frame.Frame{Writer: w})
		}
		require.Equal(t, want, late(frames), writers)
	}
}
