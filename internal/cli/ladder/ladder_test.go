package ladder_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/ladder"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
)

func answers(t *testing.T, path string) []*view.Execution {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var log struct{ Events []wire.Event }
	require.NoError(t, json.Unmarshal(b, &log))
	all := fold.Of("r", "", log.Events).Answers
	require.NotEmpty(t, all)
	return all
}

const logs = "../../../services/eventlog/fold/testdata/"

func text(t *testing.T, all []*view.Execution) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, ladder.Write(&b, all, false))
	require.NotContains(t, b.String(), "\x1b")
	return b.String()
}

func TestWrite_ShowsTheGatesAndWhatRefused(t *testing.T) {
	t.Parallel()
	got := text(t, answers(t, logs+"contract.json"))
	for _, want := range []string{
		"1 shape      ✓ passed", "2 kind       ✓ passed", "3 payload    ✓ passed", "4 contract   ✕ refused",
		"5 limits     · not reached", "8 routing    · not reached", "refused   media.image", "next (workflow author): ",
	} {
		require.Contains(t, got, want)
	}
	got = text(t, answers(t, logs+"corrected.json"))
	require.Contains(t, got, "/action/orderId: want type null or string")
	require.Contains(t, got, "rule /properties/action/anyOf/0/properties/orderId/type")
	got = text(t, answers(t, logs+"truncated.json"))
	require.Contains(t, got, "truncated after 64 tokens (max_tokens)")
}

func TestWrite_LeavesOutWhatAFallbackHides(t *testing.T) {
	t.Parallel()
	x := &view.Execution{
		NodeID: "n\x1b[31m", Story: view.Story{Headline: "h"},
		Substitution: &view.Substitution{From: view.Model{Provider: "a", Model: "b"}, To: view.Model{Provider: "c", Model: "d"}, Missing: []string{"x"}},
	}
	require.Contains(t, text(t, []*view.Execution{x}), "model: a/b lacks x, so c/d was called")
	x.Substitution.Hidden = true
	require.Contains(t, text(t, []*view.Execution{x}), "model: a/b lacks x, so another model was called")
}

func TestFind_FindsAnEnvelopeByEachOfItsNames(t *testing.T) {
	t.Parallel()
	all := answers(t, "../../../test/golden/corpus/asks-3.json")
	x := all[0]
	e := x.Calls[0].Envelopes[0]
	for _, name := range []string{e.Key, e.EnvelopeID, e.CorrelationID, e.Events[0].EventID, fmt.Sprint(e.Events[0].Sequence)} {
		found := ladder.Find(all, name)
		require.Len(t, found, 1, name)
		require.Equal(t, e, found[0].Calls[0].Envelopes[0], name)
	}
	require.Len(t, ladder.Find(all, x.NodeID), 1)
	require.Len(t, ladder.Find(all, x.NodeID+".1.1"), 1)
	require.Empty(t, ladder.Find(all, "nobody"))
	require.Contains(t, ladder.Names(all), e.Key)
}
