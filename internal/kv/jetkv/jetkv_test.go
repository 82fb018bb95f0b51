package jetkv_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/kv/kvtest"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natslink/natslinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsdtest.LeftBehind()...) }

func TestStore_KeepsThePortsContract(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]jetkv.Config{
		"on disk": {Bucket: "test", Replicas: 1}, "in memory": {Bucket: "test", Replicas: 1, InMemory: true},
		"with markers that fade": {Bucket: "test", Replicas: 1, MarkerTTL: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kvtest.Run(t, func(t *testing.T) kv.Store {
				t.Helper()
				return open(t, cfg)
			})
		})
	}
}

// A read that was lost with its connection is repeated. A lost write has an unknown outcome, and its
// caller gets an error immediately.
func TestStore_DoesNotWaitForCallsOfALostConnection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ask   func(context.Context, *jetkv.Store) error
		write bool
	}{
		"get": {func(ctx context.Context, s *jetkv.Store) error { _, err := s.Get(ctx, "key"); return err }, false},
		"put": {
			func(ctx context.Context, s *jetkv.Store) error { _, err := s.Put(ctx, "key", []byte("v")); return err },
			true,
		},
		"create": {func(ctx context.Context, s *jetkv.Store) error {
			_, err := s.Update(ctx, "new", []byte("v"), 0)
			return err
		}, true},
		"delete": {func(ctx context.Context, s *jetkv.Store) error { return s.Delete(ctx, "key", 1) }, true},
		"update": {func(ctx context.Context, s *jetkv.Store) error {
			_, err := s.Update(ctx, "key", []byte("v"), 1)
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natslinktest.Start(t)
			s, err := jetkv.Open(t.Context(), srv.Conn, jetkv.Config{Bucket: "test", Replicas: 1})
			require.NoError(t, err)
			_, err = s.Put(t.Context(), "key", []byte("value"))
			require.NoError(t, err)
			err = srv.Under(t, func(ctx context.Context) error { return tc.ask(ctx, s) }, nil)
			if tc.write {
				require.ErrorIs(t, err, kv.ErrUnavailable)
				require.ErrorIs(t, err, natslink.ErrLost)
				return
			}
			require.NoError(t, err)
		})
	}
}

// A watch that its reader abandons within a list must not leak the goroutine.
func TestWatch_LeaksNoGoroutineOfAnAbandonedReader(t *testing.T) {
	t.Parallel()
	s := open(t, jetkv.Config{Bucket: "test", Replicas: 1})
	for i := range 1000 { // more than the client keeps
		_, err := s.Put(t.Context(), fmt.Sprint("a.", i), []byte("v"))
		require.NoError(t, err)
	}
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Watch(ctx, "a.", nil, func(kv.Entry) {
			_, err := s.Get(t.Context(), "a.0") // whose answer comes after what the server has sent
			require.NoError(t, err)
			cancel()
		})
		require.ErrorIs(t, err, context.Canceled)
	}
}

func open(t *testing.T, cfg jetkv.Config) *jetkv.Store {
	t.Helper()
	nc := natsdtest.Connect(t)
	s, err := jetkv.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	return s
}

// The server's files had this value, and package natsd could not put it right.
func TestStore_ReturnsADamagedValueAsAnError(t *testing.T) {
	t.Parallel()
	s := open(t, jetkv.Config{Bucket: "test", Replicas: 1})
	rev, err := s.Put(t.Context(), "a.bad", make([]byte, 7))
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "a.good", []byte("v"))
	require.NoError(t, err)
	e, err := s.Get(t.Context(), "a.bad")
	require.ErrorIs(t, err, kv.ErrDamaged)
	require.Equal(t, rev, e.Revision)
	all, err := kv.List(t.Context(), s, "a.")
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = s.Update(t.Context(), "a.bad", []byte("again"), e.Revision)
	require.NoError(t, err)
	e, err = s.Get(t.Context(), "a.bad")
	require.NoError(t, err)
	require.Equal(t, "again", string(e.Value))
}

func TestErase_RemovesTheKeysOfAPattern(t *testing.T) {
	t.Parallel()
	for name, erasable := range map[string]bool{"of a bucket that allows it": true, "of a bucket of an earlier build": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, jetkv.Config{Bucket: "test", Replicas: 1, MarkerTTL: time.Hour, Erasable: erasable})
			keep := []string{"a.other.1", "b.r.1", "a.r"}
			for _, key := range append([]string{"a.r.1", "a.r.2.x"}, keep...) {
				_, err := s.Put(t.Context(), key, []byte("v"))
				require.NoError(t, err)
			}
			for range 2 {
				require.NoError(t, s.Erase(t.Context(), "a.r.>"))
			}
			require.NoError(t, s.Erase(t.Context(), "x.*.r"))
			for _, key := range []string{"a.r.1", "a.r.2.x"} {
				_, err := s.Get(t.Context(), key)
				require.ErrorIs(t, err, kv.ErrNotFound, key)
			}
			for _, key := range keep {
				_, err := s.Get(t.Context(), key)
				require.NoError(t, err, key)
			}
			_, err := s.Update(t.Context(), "a.r.1", []byte("again"), 0)
			require.NoError(t, err)
		})
	}
}

// A key that an earlier, failed call has erased gets its marker, so that watches see it.
func TestForget_MarksKeysThatAreAbsent(t *testing.T) {
	t.Parallel()
	for name, erasable := range map[string]bool{"of a bucket that allows it": true, "of a bucket of an earlier build": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, jetkv.Config{Bucket: "test", Replicas: 1, MarkerTTL: time.Hour, Erasable: erasable})
			_, err := s.Put(t.Context(), "a.r", []byte("v"))
			require.NoError(t, err)
			ready, deleted := make(chan struct{}), make(chan string, 10)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = s.Watch(ctx, "a.", ready, func(e kv.Entry) {
					if e.Value == nil {
						deleted <- e.Key
					}
				})
			}()
			defer func() { cancel(); <-ended }()
			<-ready
			require.NoError(t, s.Erase(t.Context(), "a.r"))
			require.NoError(t, s.Forget(t.Context(), "a.r"))
			require.NoError(t, s.Forget(t.Context(), "a.none.>"))
			select {
			case key := <-deleted:
				require.Equal(t, "a.r", key)
			case <-time.After(10 * time.Second):
				require.Fail(t, "no marker")
			}
			all, err := s.Keys(t.Context(), "a.")
			require.NoError(t, err)
			require.Empty(t, all)
		})
	}
}

func TestKeys_HasThoseOfDamagedValues(t *testing.T) {
	t.Parallel()
	s := open(t, jetkv.Config{Bucket: "test", Replicas: 1})
	_, err := s.Put(t.Context(), "a.bad", make([]byte, 7))
	require.NoError(t, err)
	all, err := s.Keys(t.Context(), "a.")
	require.NoError(t, err)
	require.Equal(t, []string{"a.bad"}, all)
}
