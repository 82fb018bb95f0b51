package notify_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsdtest.LeftBehind()...) }

// hubs returns the hubs of two processes on one broker.
func hubs(t *testing.T) (one, two *notify.Hub) {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	var out []*notify.Hub
	for range 2 {
		nc, err := srv.Connect("test")
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		h, err := notify.New(nc, "things")
		require.NoError(t, err)
		t.Cleanup(h.Close)
		require.NoError(t, nc.Flush()) // the broker has the subscription
		out = append(out, h)
	}
	return out[0], out[1]
}

func next(t *testing.T, l *notify.Listener) string {
	t.Helper()
	select {
	case b := <-l.C():
		return string(b)
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was heard")
		return ""
	}
}

func TestHub_NotifiesListenersOfTheTopicInEveryProcess(t *testing.T) {
	t.Parallel()
	one, two := hubs(t)
	mine := notify.Topic{Tenant: "acme", ID: "run_1"}
	here, there := one.Listen(mine), two.Listen(mine)
	other, foreign := two.Listen(notify.Topic{Tenant: "acme", ID: "run_2"}), two.Listen(notify.Topic{Tenant: "beta", ID: "run_1"})
	require.NoError(t, one.Publish(mine, []byte("first")))
	require.Equal(t, "first", next(t, here))
	require.Equal(t, "first", next(t, there))
	require.NoError(t, one.Publish(notify.Topic{Tenant: "acme", ID: "run_2"}, []byte("second")))
	require.Equal(t, "second", next(t, other))
	require.Empty(t, foreign.C())
	require.Empty(t, here.C())
	there.Close()
	there.Close()
	require.NoError(t, one.Publish(mine, []byte("third")))
	require.Equal(t, "third", next(t, here))
	require.Empty(t, there.C())
}

func TestHub_RejectsATopicWithWildcards(t *testing.T) {
	t.Parallel()
	h, err := notify.New(nil, "things")
	require.NoError(t, err)
	for _, bad := range []notify.Topic{{"acme", "*"}, {"acme", "a.b"}, {">", "x"}, {"", "x"}, {"acme", ""}} {
		require.Error(t, h.Publish(bad, nil), "%v", bad)
	}
}

func TestHub_DoesNotWaitForSlowListeners(t *testing.T) {
	t.Parallel()
	h, err := notify.New(nil, "things")
	require.NoError(t, err)
	topic := notify.Topic{Tenant: "acme", ID: "run_1"}
	slow := h.Listen(topic)
	defer slow.Close()
	for range 1000 {
		require.NoError(t, h.Publish(topic, []byte("x")))
	}
	require.Len(t, slow.C(), cap(slow.C()))
}
