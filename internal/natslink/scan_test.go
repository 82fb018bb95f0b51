package natslink_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
)

// lists is a stream with alternating messages of two lists; the wanted ones have even positions.
func lists(t *testing.T, messages, size int) (*nats.Conn, js.Stream) {
	t.Helper()
	_, api := storing(t)
	stream, err := natslink.Stream(t.Context(), api, js.StreamConfig{Name: "LISTS", Subjects: []string{"list.>"}})
	require.NoError(t, err)
	for range messages {
		for _, list := range []string{"other", "wanted"} {
			_, err := api.Publish(t.Context(), "list."+list+".entry", bytes.Repeat([]byte("x"), size))
			require.NoError(t, err)
		}
	}
	return api.Conn(), stream
}

// scan returns the positions of wanted messages, at most enough of them.
func scan(ctx context.Context, nc *nats.Conn, s js.Stream, from, to uint64, enough int, why error) (got []uint64, err error) {
	err = natslink.Scan(ctx, nc, s, "list.wanted.*", from, to, func(m *js.RawStreamMsg) (bool, error) {
		got = append(got, m.Sequence)
		if len(got) == enough {
			return false, why
		}
		return true, nil
	})
	return got, err
}

// ways are the functions that read a list.
var ways = map[string]func(ctx context.Context, nc *nats.Conn, s js.Stream, from, to uint64, enough int) ([]uint64, error){
	"Scan": func(ctx context.Context, nc *nats.Conn, s js.Stream, from, to uint64, enough int) ([]uint64, error) {
		return scan(ctx, nc, s, from, to, enough, nil)
	},
	"Pages": func(ctx context.Context, nc *nats.Conn, _ js.Stream, from, to uint64, enough int) ([]uint64, error) {
		return pages(ctx, nc, from, to, enough)
	},
}

func TestReaders_ReadInOrderFromOnePositionToAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ messages, size int }{
		"of many messages":  {1300, 1},
		"of large messages": {9, 600_000},
	} {
		nc, s := lists(t, c.messages, c.size)
		from, to := uint64(4), uint64(2*c.messages-2) //nolint:gosec // G115: few
		var want []uint64
		for pos := from; pos <= to; pos += 2 {
			want = append(want, pos)
		}
		for way, read := range ways {
			got, err := read(t.Context(), nc, s, from, to, 0)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %s", way, name)
		}
	}
}

func TestReaders_EndWhenTheyHaveEnough(t *testing.T) {
	t.Parallel()
	nc, s := lists(t, 3, 1)
	for way, read := range ways {
		got, err := read(t.Context(), nc, s, 1, 6, 2)
		require.NoError(t, err)
		require.Equal(t, []uint64{2, 4}, got, way)
	}
	enough := errors.New("enough")
	_, err := scan(t.Context(), nc, s, 1, 6, 1, enough)
	require.ErrorIs(t, err, enough)
}

func TestScan_WaitsForWhatAServerDoesNotHaveYet(t *testing.T) {
	t.Parallel()
	nc, s := lists(t, 2, 1)
	time.AfterFunc(20*time.Millisecond, func() { _ = nc.Publish("list.wanted.entry", nil) })
	got, err := scan(t.Context(), nc, s, 1, 5, 0, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{2, 4, 5}, got)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = scan(ctx, nc, s, 6, 7, 0, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A server has a limit for the consumers of a stream, and keeps those of a client that does not
// delete them for minutes.
func TestScan_LeavesNoConsumer(t *testing.T) {
	t.Parallel()
	nc, s := lists(t, 3, 1)
	for enough := range 3 {
		_, err := scan(t.Context(), nc, s, 1, 6, enough, nil)
		require.NoError(t, err)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		i, err := s.Info(t.Context())
		assert.NoError(c, err)
		assert.Zero(c, i.State.Consumers)
	}, 30*time.Second, time.Millisecond)
}

// The client replaces a lost consumer, and retries that for 10 seconds if no server answers. Other
// readers wait for their turn.
func TestScan_EndsWithItsCallerWhereNoServerAnswers(t *testing.T) {
	t.Parallel()
	s, api := storing(t)
	stream, err := natslink.Stream(t.Context(), api, js.StreamConfig{Name: "LISTS", Subjects: []string{"list.>"}})
	require.NoError(t, err)
	_, err = api.Publish(t.Context(), "list.wanted.entry", nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var gone time.Time
	err = natslink.Scan(ctx, api.Conn(), stream, "list.wanted.*", 1, 2, func(*js.RawStreamMsg) (bool, error) {
		for name := range stream.ConsumerNames(t.Context()).Name() {
			require.NoError(t, stream.DeleteConsumer(t.Context(), name))
		}
		require.NoError(t, s.DisableJetStream())
		time.AfterFunc(300*time.Millisecond, func() { gone = time.Now(); cancel() })
		return true, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, time.Since(gone), 5*time.Second)
	require.Eventually(t, func() bool { // it gives up by itself
		all := make([]byte, 1<<20)
		return !bytes.Contains(all[:runtime.Stack(all, true)], []byte("orderedConsumer).reset"))
	}, 30*time.Second, 50*time.Millisecond)
}

// One that is killed deletes nothing.
func TestReader_IsSoonForgotten(t *testing.T) {
	t.Parallel()
	nc, s := lists(t, 1, 1)
	c, _, err := natslink.Reader(t.Context(), nc, s, js.OrderedConsumerConfig{})
	require.NoError(t, err)
	require.LessOrEqual(t, c.CachedInfo().Config.InactiveThreshold, 30*time.Second)
}
