package mock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	"waybill.dev/waybill/services/dispatcher/seam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scripted() (*mock.Provider, *seam.Scripts) {
	scripts := seam.NewScripts(memory.New())
	return mock.New(scripts), scripts
}

func ask(nodeID string) provider.Request {
	r := providertest.Ask("mock-mini", "hello")
	r.NodeID = nodeID
	return r
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	providertest.Run(t, func(*testing.T) provider.Provider {
		p, scripts := scripted()
		script := make([]mock.Entry, 16)
		for i := range script {
			script[i].Content = `{"valid":true}`
		}
		require.NoError(t, scripts.Program(t.Context(), "", "n", script))
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
		p, scripts := scripted()
		require.NoError(t, scripts.Program(t.Context(), "", "n", []mock.Entry{tc.entry}))
		res, pieces := providertest.Answer(t, p, ask("n"))
		require.Equal(t, tc.want, res.Stop, "%+v", tc.entry)
		require.Equal(t, tc.raw, res.RawStop)
		require.Equal(t, tc.entry.RefusalText, res.RefusalText)
		require.Equal(t, tc.finish, pieces[len(pieces)-1].FinishReason, "%+v", tc.entry)
	}
}

func TestCall_TakesEntriesInOrderPerNodeAndThenAnswersWithNothing(t *testing.T) {
	t.Parallel()
	p, scripts := scripted()
	require.NoError(t, scripts.Program(t.Context(), "", "a", []mock.Entry{{Content: "a1"}, {Content: "a2"}}))
	require.NoError(t, scripts.Program(t.Context(), "", "b", []mock.Entry{{Content: "b1"}}))
	var got []string
	for _, node := range []string{"a", "b", "a", "a", "b", "unscripted"} {
		res, err := p.Call(t.Context(), ask(node), nil)
		require.NoError(t, err)
		require.Equal(t, provider.StopClean, res.Stop)
		got = append(got, res.Text)
	}
	require.Equal(t, []string{"a1", "b1", "a2", "", "", ""}, got)
}

func TestCall_CountsTokensAsProgrammedOrByDefault(t *testing.T) {
	t.Parallel()
	p, scripts := scripted()
	require.NoError(t, scripts.Program(t.Context(), "", "n", []mock.Entry{{}, {InputTokens: 7, OutputTokens: 3}}))
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
	p, scripts := scripted()
	require.NoError(t, scripts.Program(t.Context(), "", "n", []mock.Entry{{Content: "old"}}))
	entries := []mock.Entry{{Content: "new"}}
	require.NoError(t, scripts.Program(t.Context(), "", "n", entries))
	entries[0].Content = "changed"
	res, err := p.Call(t.Context(), ask("n"), nil)
	require.NoError(t, err)
	require.Equal(t, "new", res.Text)
}

func TestCall_TellsTheBudgetAndTheTenant(t *testing.T) {
	t.Parallel()
	scripts := seam.NewScripts(memory.New())
	for _, budget := range []int{50, 100} {
		r := ask("n")
		r.MaxTokens, r.Tenant = budget, "acme"
		_, err := mock.New(scripts).Call(t.Context(), r, nil)
		require.NoError(t, err)
		got, ok, err := scripts.LastBudget(t.Context(), "acme", "n")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, budget, got)
	}
}

// down are unavailable records.
type down struct{ kv.Store }

func (down) Get(context.Context, string) (kv.Entry, error) { return kv.Entry{}, kv.ErrUnavailable }

func TestCall_WithoutItsScriptMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	_, err := mock.New(seam.NewScripts(down{memory.New()})).Call(t.Context(), ask("n"), nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, provider.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
}

func TestCall_PanicsWithWhatItWasGivenAndGoesOn(t *testing.T) {
	t.Parallel()
	scripts := seam.NewScripts(memory.New())
	require.NoError(t, scripts.Program(t.Context(), "", "n", []mock.Entry{{Panic: "boom"}, {Content: "after"}}))
	p := mock.New(scripts)
	req := provider.Request{
		Provider: mock.ID,
		Model:    "m",
		NodeID:   "n",
		Messages: []provider.Message{{Role: "user", Content: []byte(`"hi"`)}},
	}
	require.PanicsWithValue(t, "boom", func() { _, _ = p.Call(t.Context(), req, func(provider.Delta) error { return nil }) })
	r, err := p.Call(t.Context(), req, func(provider.Delta) error { return nil })
	require.NoError(t, err)
	require.Equal(t, "after", r.Text)
}
