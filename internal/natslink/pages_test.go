package natslink_test

import (
	"cmp"
	"context"
	"encoding/json"
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

// pages returns the positions of wanted messages, at most enough of them.
func pages(ctx context.Context, nc *nats.Conn, from, to uint64, enough int) (got []uint64, err error) {
	err = natslink.Pages(ctx, nc, "LISTS", "list.wanted.*", from, to, func(m *js.RawStreamMsg) (bool, error) {
		if m.Subject != "list.wanted.entry" || m.Time.IsZero() {
			return false, fmt.Errorf("%s of %s", m.Subject, m.Time)
		}
		got = append(got, m.Sequence)
		return len(got) != enough, nil
	})
	return got, err
}

func TestPages_AreSentOnceAndLeaveNothing(t *testing.T) {
	t.Parallel()
	nc, _ := lists(t, 10, 100_000)
	before, subs := nc.Stats().InBytes, nc.NumSubscriptions()
	got, err := pages(t.Context(), nc, 1, 20, 0)
	require.NoError(t, err)
	require.Len(t, got, 10)
	require.Less(t, nc.Stats().InBytes-before, uint64(1_500_000))
	require.Equal(t, subs, nc.NumSubscriptions())
}

// The last message may be deleted and later ones stored. The reader detects the gap.
func TestPages_ReturnLaterMessagesIfTheLastIsGone(t *testing.T) {
	t.Parallel()
	nc, s := lists(t, 3, 1)
	require.NoError(t, s.DeleteMsg(t.Context(), 4))
	got, err := pages(t.Context(), nc, 1, 4, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{2, 6}, got)
}

func TestPages_ReportThatAServerLacksMessages(t *testing.T) {
	t.Parallel()
	nc, _ := lists(t, 2, 1)
	got, err := pages(t.Context(), nc, 1, 6, 0)
	require.ErrorIs(t, err, natslink.ErrLacking)
	require.Equal(t, []uint64{2, 4}, got)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = pages(ctx, nc, 1, 6, 0)
	require.ErrorIs(t, err, context.Canceled)
}

// Messages in flight are lost when a server is killed or a connection breaks.
func TestPages_RequestLostMessagesAgain(t *testing.T) {
	t.Parallel()
	s := natslinktest.Serve(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	answer := func(to string, pos, before int) { require.NoError(t, nc.PublishMsg(answered(to, pos, before))) }
	asked := 0
	_, err = nc.Subscribe("$JS.API.DIRECT.GET.LISTS", func(m *nats.Msg) {
		switch asked++; asked {
		case 1, 2: // nothing is there yet
			none := nats.NewMsg(m.Reply)
			none.Header = nats.Header{"Status": {"404"}}
			require.NoError(t, nc.PublishMsg(none))
		case 3: // the second of three is lost
			answer(m.Reply, 1, 0)
			answer(m.Reply, 3, 2)
		case 4: // the first of two is lost
			answer(m.Reply, 3, 2)
		case 5: // all are lost, and the end
		case 6: // the end is lost
			answer(m.Reply, 2, 0)
		default:
			answer(m.Reply, 3, 0)
		}
	})
	require.NoError(t, err)
	got, err := pages(t.Context(), nc, 1, 3, 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 3}, got, "each once, and in order")
	require.GreaterOrEqual(t, asked, 7)
}

// pageMessages is the size of a whole page, and pageFewer the ratio of two sizes.
const (
	pageMessages = 64
	pageFewer    = 8
)

// request is a request for a page, and whether the server answered it.
type request struct {
	batch int
	found bool
}

// followers returns the sizes that may follow. On a busy machine an answer may be late: the size
// then stays, or is reduced.
func (r request) followers() []int {
	fewer := max(1, r.batch/pageFewer)
	if !r.found {
		return []int{fewer}
	}
	return []int{min(pageMessages, r.batch*pageFewer), r.batch, fewer}
}

// A server needs seconds to find the messages of a page that are scattered over a large log. Requesting
// the same page again would never end. A stopped server is silent, too; the next one gets requests for
// whole pages again.
func TestPages_RequestFewerFromASlowServer(t *testing.T) {
	t.Parallel()
	const last = 200
	for name, c := range map[string]struct {
		finds  func(question, batch int) bool
		takes  time.Duration
		enough int
		// most is the largest batch after the first answer.
		most int
	}{
		"a few at a time": {
			finds: func(_, batch int) bool { return batch <= 10 },
			takes: 100 * time.Millisecond,
			most:  8,
		},
		"one at a time": {
			finds:  func(_, batch int) bool { return batch == 1 },
			enough: 3,
			most:   8,
		},
		"two servers end, one lives": {
			finds: func(question, _ int) bool { return question > 2 },
			most:  64,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := natslinktest.Serve(t, &server.Options{})
			nc, err := nats.Connect(s.ClientURL())
			require.NoError(t, err)
			t.Cleanup(nc.Close)
			var asked []request
			_, err = nc.Subscribe("$JS.API.DIRECT.GET.LISTS", func(m *nats.Msg) {
				var q struct{ Seq, Batch int }
				require.NoError(t, json.Unmarshal(m.Data, &q))
				found := c.finds(len(asked)+1, q.Batch)
				if asked = append(asked, request{q.Batch, found}); !found {
					return // it is searching, or has stopped
				}
				time.Sleep(c.takes) //nolint:forbidigo // as a server that looks
				before := 0
				for pos := q.Seq; pos < min(q.Seq+q.Batch, last+1); pos++ {
					require.NoError(t, nc.PublishMsg(answered(m.Reply, pos, before)))
					before = pos
				}
				end := nats.NewMsg(m.Reply)
				end.Header = nats.Header{"Status": {"204"}}
				require.NoError(t, nc.PublishMsg(end))
			})
			require.NoError(t, err)
			got, err := pages(t.Context(), nc, 1, last, c.enough)
			require.NoError(t, err)
			require.Len(t, got, cmp.Or(c.enough, last))
			most := 0
			for i, next := range asked[1:] {
				last := asked[i]
				require.Contains(t, last.followers(), next.batch, "%v", asked)
				if most > 0 || last.found {
					most = max(most, next.batch)
				}
			}
			require.Equal(t, pageMessages, asked[0].batch)
			require.Equal(t, c.most, most, "%v", asked)
		})
	}
}

func TestShortPage_NeedsOneRequest(t *testing.T) {
	t.Parallel()
	const many = 100
	for name, c := range map[string]struct{ size, want int }{
		"small ones":         {1, 64},
		"large ones":         {40_000, 2},
		"one that is larger": {80_000, 1},
	} {
		nc, _ := lists(t, many, c.size)
		for got := 0; got == 0; { // it waits briefly, and a busy server answers later
			sent := nc.Stats().OutMsgs
			require.NoError(t, natslink.ShortPage(t.Context(), nc, "LISTS", "list.wanted.*", 1, func(*js.RawStreamMsg) (bool, error) {
				got++
				return true, nil
			}))
			require.Contains(t, []int{0, c.want}, got, name)
			require.Equal(t, sent+1, nc.Stats().OutMsgs)
		}
	}

	s := natslinktest.Serve(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.SubscribeSync("$JS.API.DIRECT.GET.LISTS") // it never answers
	require.NoError(t, err)
	none := func(*js.RawStreamMsg) (bool, error) { return false, nil }
	require.NoError(t, natslink.ShortPage(t.Context(), nc, "LISTS", "list.wanted.*", 1, none))
	require.ErrorIs(t, natslink.ShortPage(t.Context(), nc, "OTHERS", "list.wanted.*", 1, none), nats.ErrNoResponders)
}

func TestPages_EndWithTheirCaller(t *testing.T) {
	t.Parallel()
	s := natslinktest.Serve(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Subscribe("$JS.API.DIRECT.GET.LISTS", func(m *nats.Msg) {
		require.NoError(t, nc.PublishMsg(answered(m.Reply, 1, 0)))
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var sent uint64
	err = natslink.Pages(ctx, nc, "LISTS", "list.wanted.*", 1, 3, func(*js.RawStreamMsg) (bool, error) {
		cancel()
		sent = nc.Stats().OutMsgs
		return true, nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, sent, nc.Stats().OutMsgs)
}

// answered is a message of a page, as the server answers with it.
func answered(to string, pos, before int) *nats.Msg {
	m := nats.NewMsg(to)
	m.Header = nats.Header{
		"Nats-Subject": {"list.wanted.entry"}, "Nats-Sequence": {fmt.Sprint(pos)}, "Nats-Last-Sequence": {fmt.Sprint(before)},
		"Nats-Time-Stamp": {time.Now().Format(time.RFC3339Nano)},
	}
	return m
}

func TestPages_ReportErrors(t *testing.T) {
	t.Parallel()
	s := natslinktest.Serve(t, &server.Options{})
	nc, err := nats.Connect(s.ClientURL())
	require.NoError(t, err)
	_, err = pages(t.Context(), nc, 1, 3, 0)
	require.ErrorIs(t, err, nats.ErrNoResponders)

	for status, want := range map[string]string{"408": "408 Bad Request", "": "answer without a position"} {
		sub, err := nc.Subscribe("$JS.API.DIRECT.GET.LISTS", func(m *nats.Msg) {
			a := nats.NewMsg(m.Reply)
			a.Header = nats.Header{"Nats-Last-Sequence": {"0"}}
			if status != "" {
				a.Header.Set("Status", status)
				a.Header.Set("Description", "Bad Request")
			}
			require.NoError(t, nc.PublishMsg(a))
		})
		require.NoError(t, err)
		_, err = pages(t.Context(), nc, 1, 3, 0)
		require.ErrorContains(t, err, want)
		require.NoError(t, sub.Unsubscribe())
	}
	nc.Close()
	_, err = pages(t.Context(), nc, 1, 3, 0)
	require.ErrorIs(t, err, nats.ErrConnectionClosed)
}
