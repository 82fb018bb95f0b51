package journal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
)

func TestLate_FindsAnOwnerThatWritesAfterAnother(t *testing.T) {
	t.Parallel()
	for writers, want := range map[string][]string{"a a b b": nil, "a - a b": nil, "a b a": {"a"}, "a b c b": {"b"}} {
		var frames []*frame.Frame
		for w := range strings.FieldsSeq(writers) {
			frames = append(frames, &frame.Frame{Writer: strings.Trim(w, "-")})
		}
		require.Equal(t, want, late(frames), writers)
	}
}
