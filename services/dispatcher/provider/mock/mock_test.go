package mock_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ask(nodeID string) provider.Request {
	r := providertest.Ask("mock-mini", "hello")
	r.NodeID = nodeID
	return r
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	providertest.Run(t, func(*testing.T) provider.Provider {
		p := mock.New()
		script := make([]mock.Entry, 16)
		for i := range script {
			script[i].Content = `{"valid":true}`
		}
		p.Program("n", script)
		return p
	}, providertest.Options{Request: ask("n")})
}

// OpenWOP envelope contract §14.1: the mock's words for the classes.
func TestCall_ClassifiesEveryStopReason(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		entry  mock.Entry
		want   provider.StopClass
		raw    string
		finish string
	}{
		{mock.Entry{}, provider.StopClean, "end_turn", "stop"},
		{mock.Entry{StopReason: "end_turn"}, provider.StopClean, "end_turn", "stop"},
		{mock.Entry{StopReason: "max_tokens"}, provider.StopTruncated, "max_tokens", "length"},
		{mock.Entry{StopReason: "length"}, provider.StopTruncated, "length", "length"},
		{mock.Entry{StopReason: "stop_sequence"}, provider.StopSequence, "stop_sequence", "stop"},
		{mock.Entry{StopReason: "safety"}, provider.StopRefused, "safety", "content_filter"},
		{mock.Entry{RefusalText: "no"}, provider.StopRefused, "end_turn", "content_filter"},
		{mock.Entry{StopReason: "max_tokens", RefusalText: "no"}, provider.StopRefused, "max_tokens", "content_filter"},
		{mock.Entry{StopReason: "meteor"}, provider.StopUnknown, "meteor", ""},
	} {
		p := mock.New()
		p.Program("n", []mock.Entry{tc.entry})
		var pieces []provider.Delta
		res, err := p.Call(t.Context(), ask("n"), func(d provider.Delta) error {
			pieces = append(pieces, d)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, tc.want, res.Stop, "%+v", tc.entry)
		require.Equal(t, tc.raw, res.RawStop)
		require.Equal(t, tc.entry.RefusalText, res.RefusalText)
		require.Equal(t, tc.finish, pieces[len(pieces)-1].FinishReason, "%+v", tc.entry)
		providertest.Check(t, res, pieces)
	}
}

func TestCall_TakesEntriesInOrderPerNodeAndThenAnswersWithNothing(t *testing.T) {
	t.Parallel()
	p := mock.New()
	p.Program("a", []mock.Entry{{Content: "a1"}, {Content: "a2"}})
	p.Program("b", []mock.Entry{{Content: "b1"}})
	var got []string
	for _, node := range []string{"a", "b", "a", "a", "b", "nobody"} {
		res, err := p.Call(t.Context(), ask(node), nil)
		require.NoError(t, err)
		require.Equal(t, provider.StopClean, res.Stop)
		got = append(got, res.Text)
	}
	require.Equal(t, []string{"a1", "b1", "a2", "", "", ""}, got)
}

func TestCall_CountsTokensAsProgrammedOrByDefault(t *testing.T) {
	t.Parallel()
	p := mock.New()
	p.Program("n", []mock.Entry{{}, {InputTokens: 7, OutputTokens: 3}})
	for _, want := range []provider.Usage{
		{InputTokens: 100, OutputTokens: 50, TotalTokens: 150, Known: true},
		{InputTokens: 7, OutputTokens: 3, TotalTokens: 10, Known: true},
	} {
		res, err := p.Call(t.Context(), ask("n"), nil)
		require.NoError(t, err)
		require.Equal(t, want, res.Usage)
	}
}

func TestProgram_ReplacesTheQueueAndCopiesIt(t *testing.T) {
	t.Parallel()
	p := mock.New()
	p.Program("n", []mock.Entry{{Content: "old"}})
	entries := []mock.Entry{{Content: "new"}}
	p.Program("n", entries)
	entries[0].Content = "changed"
	res, err := p.Call(t.Context(), ask("n"), nil)
	require.NoError(t, err)
	require.Equal(t, "new", res.Text)
}

func TestLastBudget_TellsTheLatestCall(t *testing.T) {
	t.Parallel()
	p := mock.New()
	_, ok := p.LastBudget("n")
	require.False(t, ok)
	for _, budget := range []int{50, 100} {
		r := ask("n")
		r.MaxTokens = budget
		_, err := p.Call(t.Context(), r, nil)
		require.NoError(t, err)
		got, ok := p.LastBudget("n")
		require.True(t, ok)
		require.Equal(t, budget, got)
	}
}

func TestReset_DropsScriptsAndBudgets(t *testing.T) {
	t.Parallel()
	p := mock.New()
	p.Program("a", []mock.Entry{{Content: "x"}})
	p.Program("b", nil)
	_, err := p.Call(t.Context(), ask("c"), nil)
	require.NoError(t, err)
	require.Equal(t, 2, p.Reset())
	require.Zero(t, p.Reset())
	_, ok := p.LastBudget("c")
	require.False(t, ok)
	res, err := p.Call(t.Context(), ask("a"), nil)
	require.NoError(t, err)
	require.Empty(t, res.Text)
}

func TestProvider_RemembersABoundedNumberOfNodes(t *testing.T) {
	t.Parallel()
	p := mock.New()
	for i := range 10_050 {
		p.Program(fmt.Sprintf("n%d", i), nil)
	}
	p.Program("latest", []mock.Entry{{Content: "here"}})
	res, err := p.Call(t.Context(), ask("latest"), nil)
	require.NoError(t, err)
	require.Equal(t, "here", res.Text)
	require.Equal(t, 10_000, p.Reset())
}
