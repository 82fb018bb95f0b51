package natslink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natslink/natslinktest"
)

// lists is a stream of two lists, whose messages come by turns: what is wanted has even positions.
func lists(t *testing.T, messages, size int) js.JetStream {
	t.Helper()
	s := natslinktest.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	_, err = api.CreateStream(t.Context(), js.StreamConfig{Name: "LISTS", Subjects: []string{"list.>"}, AllowDirect: true})
	require.NoError(t, err)
	for range messages {
		for _, list := range []string{"other", "wanted"} {
			_, err := api.PublishAsync("list."+list+".entry", bytes.Repeat([]byte("x"), size))
			require.NoError(t, err)
		}
	}
	select {
	case <-api.PublishAsyncComplete():
	case <-t.Context().Done():
	}
	return api
}

func TestScan_ReadsInOrderFromOnePositionToAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ messages, size int }{
		"of many messages":  {1300, 1},
		"of large messages": {9, 600_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := lists(t, c.messages, c.size)
			var got []uint64
			from, to := uint64(4), uint64(2*c.messages-2)
			err := natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", from, to, func(m *js.RawStreamMsg) (bool, error) {
				require.Equal(t, "list.wanted.entry", m.Subject)
				require.Len(t, m.Data, c.size)
				got = append(got, m.Sequence)
				return true, nil
			})
			require.NoError(t, err)
			var want []uint64
			for pos := from; pos <= to; pos += 2 {
				want = append(want, pos)
			}
			require.Equal(t, want, got)
		})
	}
}

func TestScan_LeavesNothingOnTheServer(t *testing.T) {
	t.Parallel()
	api := lists(t, 3, 1)
	before := api.Conn().NumSubscriptions()
	for range 20 {
		seen := 0
		require.NoError(t, natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", 1, 6, func(*js.RawStreamMsg) (bool, error) {
			seen++
			return true, nil
		}))
		require.Equal(t, 3, seen)
	}
	s, err := api.Stream(t.Context(), "LISTS")
	require.NoError(t, err)
	require.Zero(t, s.CachedInfo().State.Consumers, "a server has a limit for them")
	require.Equal(t, before, api.Conn().NumSubscriptions())
}

func TestScan_EndsWhenItsReaderHasEnough(t *testing.T) {
	t.Parallel()
	api := lists(t, 3, 1)
	enough := errors.New("enough")
	for name, want := range map[string]error{"and says so": nil, "for a reason": enough} {
		seen := 0
		err := natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", 1, 6, func(*js.RawStreamMsg) (bool, error) {
			seen++
			return false, want
		})
		require.ErrorIs(t, err, want, name)
		require.Equal(t, 1, seen, name)
	}
}

func TestScan_WaitsForWhatAServerDoesNotHaveYet(t *testing.T) {
	t.Parallel()
	api := lists(t, 2, 1)
	var got []uint64
	require.NoError(t, natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", 1, 5, func(m *js.RawStreamMsg) (bool, error) {
		if got = append(got, m.Sequence); len(got) == 2 {
			_, err := api.PublishAsync("list.wanted.entry", []byte("x"))
			require.NoError(t, err)
		}
		return true, nil
	}))
	require.Equal(t, []uint64{2, 4, 5}, got)

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	err := natslink.Scan(ctx, api, "LISTS", "list.wanted.*", 6, 7, func(*js.RawStreamMsg) (bool, error) { return true, nil })
	require.ErrorIs(t, err, context.Canceled)
}

// A server that is killed, or a connection that breaks, takes messages along that were on their way.
func TestScan_AsksAgainForWhatGotLost(t *testing.T) {
	t.Parallel()
	s := natslinktest.Serve(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	answer := func(to string, pos, before int) {
		m := nats.NewMsg(to)
		m.Header = nats.Header{
			"Nats-Stream": {"LISTS"}, "Nats-Subject": {"list.wanted.entry"}, "Nats-Sequence": {fmt.Sprint(pos)},
			"Nats-Time-Stamp": {time.Now().Format(time.RFC3339Nano)}, "Nats-Num-Pending": {"1"}, "Nats-Last-Sequence": {fmt.Sprint(before)},
		}
		m.Data = []byte("x")
		require.NoError(t, nc.PublishMsg(m))
	}
	end := func(to string) {
		m := nats.NewMsg(to)
		m.Header = nats.Header{"Status": {"204"}, "Description": {"EOB"}}
		require.NoError(t, nc.PublishMsg(m))
	}
	var asked []string
	_, err = nc.Subscribe("$JS.API.DIRECT.GET.LISTS", func(m *nats.Msg) {
		switch asked = append(asked, string(m.Data)); len(asked) {
		case 1: // the second of three is lost
			answer(m.Reply, 1, 0)
			answer(m.Reply, 3, 2)
		case 2: // the first of two is lost
			answer(m.Reply, 3, 2)
		case 3: // and then the end
			answer(m.Reply, 2, 0)
		default:
			answer(m.Reply, 3, 0)
		}
		end(m.Reply)
	})
	require.NoError(t, err)
	var got []uint64
	require.NoError(t, natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", 1, 3, func(m *js.RawStreamMsg) (bool, error) {
		got = append(got, m.Sequence)
		return true, nil
	}))
	require.Equal(t, []uint64{1, 2, 3}, got, "each once, and in order")
	require.Len(t, asked, 4)
}

func TestScan_SaysThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	s := natslinktest.Serve(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	api, err := js.New(nc)
	require.NoError(t, err)
	all := func(*js.RawStreamMsg) (bool, error) { return true, nil }
	require.ErrorIs(t, natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", 1, 3, all), nats.ErrNoResponders)
	nc.Close()
	require.Error(t, natslink.Scan(t.Context(), api, "LISTS", "list.wanted.*", 1, 3, all))
}
