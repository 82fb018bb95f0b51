package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/dispatcher/provider"
	double "waybill.dev/waybill/test/double/anthropic"
)

// However the vendor cuts an answer in pieces, its text is the pieces' sum; and
// where the budget ends it, what is there is its beginning and is called truncated.
func TestCall_JoinsWhateverPiecesCome(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.StringN(1, 12, -1), 1, 12).Draw(t, "pieces")
		req := rapid.SampledFrom([]way{free, format, tool}).Draw(t, "way").ask()
		req.MaxTokens = rapid.IntRange(1, 40).Draw(t, "maxTokens")
		r.server.Enqueue(double.Reply{Pieces: pieces, Noise: rapid.Bool().Draw(t, "noise")})
		var streamed strings.Builder
		res, err := r.Call(t.Context(), req, func(d provider.Delta) error {
			streamed.WriteString(d.Text)
			return nil
		})
		require.NoError(t, err)
		all := strings.Join(pieces, "")
		require.Equal(t, res.Text, streamed.String())
		require.True(t, strings.HasPrefix(all, res.Text))
		require.Equal(t, res.Text == all, res.Stop == provider.StopClean)
		require.Equal(t, res.Text != all, res.Stop == provider.StopTruncated)
		require.LessOrEqual(t, res.Usage.OutputTokens, req.MaxTokens)
	})
}
