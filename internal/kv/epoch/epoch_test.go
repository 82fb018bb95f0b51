package epoch_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/epoch"
	"waybill.dev/waybill/internal/kv/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func now(t *testing.T, s epoch.Space) epoch.Records {
	t.Helper()
	r, err := s.Now(t.Context())
	require.NoError(t, err)
	return r
}

func values(t *testing.T, r epoch.Records, prefix string) []string {
	t.Helper()
	list, err := r.List(t.Context(), prefix)
	require.NoError(t, err)
	out := []string{}
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

func TestClear_ClearsOneSpaceForEveryProcess(t *testing.T) {
	t.Parallel()
	store := memory.New()
	here, there, other := epoch.New(store, "a", "acme"), epoch.New(store, "a", "acme"), epoch.New(store, "a", "beta")
	require.NoError(t, now(t, here).Put(t.Context(), "k.2", []byte("two")))
	require.NoError(t, now(t, here).Put(t.Context(), "k.1", []byte("one")))
	require.NoError(t, now(t, other).Put(t.Context(), "k.1", []byte("theirs")))
	require.Equal(t, []string{"one", "two"}, values(t, now(t, there), "k."))

	old := now(t, there)
	require.NoError(t, there.Clear(t.Context()))
	require.Empty(t, values(t, now(t, here), "k."))
	v, revision, err := now(t, here).Get(t.Context(), "k.1")
	require.NoError(t, err)
	require.Nil(t, v)
	require.Zero(t, revision)
	require.Equal(t, []string{"theirs"}, values(t, now(t, other), "k."))

	require.NoError(t, old.Put(t.Context(), "k.3", []byte("late")))
	require.Empty(t, values(t, now(t, here), "k."), "a step that began before is of the old epoch")
}

func TestChange_LosesNoUpdate(t *testing.T) {
	t.Parallel()
	s := epoch.New(memory.New(), "x")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				err := now(t, s).Change(t.Context(), "n", func(v []byte) ([]byte, error) {
					n, _ := strconv.Atoi(string(v))
					return strconv.AppendInt(nil, int64(n+1), 10), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v, _, err := now(t, s).Get(t.Context(), "n")
	require.NoError(t, err)
	require.Equal(t, "160", string(v))

	stop := errors.New("stop")
	require.ErrorIs(t, now(t, s).Change(t.Context(), "n", func([]byte) ([]byte, error) { return nil, stop }), stop)
}

func TestUpdate_NeedsTheRevision(t *testing.T) {
	t.Parallel()
	r := now(t, epoch.New(memory.New(), "x"))
	require.NoError(t, r.Update(t.Context(), "k", []byte("1"), 0))
	require.ErrorIs(t, r.Update(t.Context(), "k", []byte("2"), 0), kv.ErrConflict)
}

func TestNew_AnyTextNamesASpace(t *testing.T) {
	t.Parallel()
	store := memory.New()
	for _, name := range []string{"", "a.b", "ä >*", "in", "epoch"} {
		s := epoch.New(store, "s", name)
		require.NoError(t, s.Clear(t.Context()))
		require.NoError(t, now(t, s).Put(t.Context(), "k.x", []byte(name+"!")))
	}
	require.Equal(t, []string{"a.b!"}, values(t, now(t, epoch.New(store, "s", "a.b")), "k."))
}
