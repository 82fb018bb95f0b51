package seam_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/seam"
)

func take(t *testing.T, s *seam.Scripts, tenant, node string, budget int) string {
	t.Helper()
	e, err := s.Take(t.Context(), tenant, node, budget)
	require.NoError(t, err)
	return e.Content
}

func TestScripts_AreQueuesOfATenantsNodes(t *testing.T) {
	t.Parallel()
	s := seam.NewScripts(memory.New())
	entries := []mock.Entry{{Content: "one"}, {Content: "two"}}
	require.NoError(t, s.Program(t.Context(), "acme", "n", []mock.Entry{{Content: "replaced"}}))
	require.NoError(t, s.Program(t.Context(), "acme", "n", entries))
	require.NoError(t, s.Program(t.Context(), "beta", "n", []mock.Entry{{Content: "theirs"}}))
	entries[0].Content = "changed"
	require.Equal(t, "one", take(t, s, "acme", "n", 10))
	require.Empty(t, take(t, s, "acme", "m", 20), "another node")
	require.Equal(t, "two", take(t, s, "acme", "n", 30))
	require.Empty(t, take(t, s, "acme", "n", 40), "exhausted")
	require.Equal(t, "theirs", take(t, s, "beta", "n", 50))
	for node, want := range map[string]int{"n": 40, "m": 20} {
		got, ok, err := s.LastBudget(t.Context(), "acme", node)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	_, ok, err := s.LastBudget(t.Context(), "acme", "never")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestReset_IsOfOneTenant(t *testing.T) {
	t.Parallel()
	s := seam.NewScripts(memory.New())
	for _, tenant := range []string{"acme", "beta"} {
		require.NoError(t, s.Program(t.Context(), tenant, "n", []mock.Entry{{Content: tenant}, {Content: tenant}}))
		require.NoError(t, s.Program(t.Context(), tenant, "m", nil))
		require.Equal(t, tenant, take(t, s, tenant, "n", 1))
	}
	n, err := s.Reset(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = s.Reset(t.Context(), "acme")
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, take(t, s, "acme", "n", 1))
	_, ok, err := s.LastBudget(t.Context(), "acme", "m")
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, "beta", take(t, s, "beta", "n", 1))
}

// A script stored by one process is used by another; no entry is used twice.
func TestTake_OfManyProcessesEachGetsItsOwnEntry(t *testing.T) {
	t.Parallel()
	records := memory.New()
	entries := make([]mock.Entry, 60)
	for i := range entries {
		entries[i].Content = strings.Repeat("x", i+1)
	}
	require.NoError(t, seam.NewScripts(records).Program(t.Context(), "acme", "n", entries))
	var (
		mu   sync.Mutex
		seen = map[string]int{}
		wg   sync.WaitGroup
	)
	for range 4 {
		wg.Go(func() {
			s := seam.NewScripts(records)
			for range 15 {
				e, err := s.Take(context.WithoutCancel(t.Context()), "acme", "n", 1)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				seen[e.Content]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 60)
}

func TestProgram_IsBounded(t *testing.T) {
	t.Parallel()
	err := seam.NewScripts(memory.New()).Program(t.Context(), "acme", "n", []mock.Entry{{Content: strings.Repeat("x", 3<<20)}})
	require.ErrorIs(t, err, seam.ErrTooLarge)
}

// down are unavailable records.
type down struct{ kv.Store }

func (down) Get(context.Context, string) (kv.Entry, error) { return kv.Entry{}, kv.ErrUnavailable }

func TestScripts_ReportAStoreThatIsDown(t *testing.T) {
	t.Parallel()
	s := seam.NewScripts(down{memory.New()})
	_, errTake := s.Take(t.Context(), "acme", "n", 1)
	_, _, errBudget := s.LastBudget(t.Context(), "acme", "n")
	_, errReset := s.Reset(t.Context(), "acme")
	for _, err := range []error{errTake, errBudget, errReset, s.Program(t.Context(), "acme", "n", nil)} {
		require.ErrorIs(t, err, kv.ErrUnavailable)
	}
}
