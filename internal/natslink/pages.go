package natslink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/lifecycle"
)

const (
	// pageMessages is how many messages a server is asked for at a time: it stores nothing while it looks for
	// them, and one that is not that of the client sends none until it has them all. pageBytes is how
	// many bytes: the message that reaches them is the last.
	pageMessages = 64
	pageBytes    = 1 << 20
	// shortBytes is as many bytes of a short page.
	shortBytes = 64 << 10
	// pageTry bounds the wait for a message of a page: a server that ends amid one says nothing. It may also
	// be looking, for messages that lie far apart: it is asked for an eighth then, and for one at last. One
	// that has answered in an eighth of the time is asked for more again. For a single one there is more
	// time, and all together are less than two seconds, after which callers give up.
	pageTry   = 400 * time.Millisecond
	singleTry = time.Second
	pageFewer = 8
	// A server that does not have yet what another has is asked so often, with a pause each.
	pageTries = 4
	pagePause = 10 * time.Millisecond
)

// ErrLacking says that a server does not have what another has, or had.
var ErrLacking = errors.New("the server lacks some of what was stored")

// Pages hands over what Scan does, and asks for it in pages, of any server that has a copy (NATS
// ADR-31): the servers of a cluster agree upon each consumer, which takes long while one of them is
// away. Where there is one copy alone its server stores nothing until it has found a page: Scan it. The
// stream must allow direct reads. A message behind the last position is handed over if that is not there.
func Pages(ctx context.Context, nc *nats.Conn, stream, subject string, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	batch := pageMessages
	for tries := 0; from <= to; tries++ {
		if tries == pageTries {
			return fmt.Errorf("%w: nothing is at %d to %d", ErrLacking, from, to)
		}
		asked := time.Now()
		next, more, err := page(ctx, nc, question{stream, subject, from, to, batch, pageBytes}, each)
		switch {
		case errors.Is(err, errSilent):
			tries, batch = -1, max(1, batch/pageFewer)
		case err == nil && more && next > from:
			if tries = -1; time.Since(asked) < pageTry/pageFewer {
				batch = min(pageMessages, batch*pageFewer)
			}
		case err != nil || !more:
			return err
		case !lifecycle.Wait(ctx, pagePause):
			return ctx.Err()
		}
		from = next
	}
	return nil
}

// ShortPage hands over the first messages of a subject from a position on, of any server that has a copy, as many
// as come: it asks once, for few bytes and the message that reaches them.
func ShortPage(ctx context.Context, nc *nats.Conn, stream, subject string, from uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	_, _, err := page(ctx, nc, question{stream, subject, from, math.MaxUint64, pageMessages, shortBytes}, each)
	if errors.Is(err, errSilent) {
		return nil
	}
	return err
}

// errSilent says that a server did not answer, or ended amid its answer.
var errSilent = errors.New("the server says nothing")

// question is what a page is asked for with: so many messages of a subject, from a position on. None is of
// interest behind the last one.
type question struct {
	stream, subject string
	from, to        uint64
	batch, bytes    int
}

// patience is how long a server may take for a message.
func (q question) patience() time.Duration {
	if q.batch == 1 {
		return singleTry
	}
	return pageTry
}

// page hands over a page, or what arrives of it. next is where the one after it begins. Errors: errSilent.
func page(ctx context.Context, nc *nats.Conn, q question, each func(*js.RawStreamMsg) (bool, error)) (next uint64, more bool, err error) {
	from := q.from
	ask, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": q.subject, "batch": q.batch, "max_bytes": q.bytes})
	if err != nil {
		return from, false, err
	}
	inbox := nc.NewInbox() // not that of other answers, to which it would be sent a second time
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return from, false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest("$JS.API.DIRECT.GET."+q.stream, inbox, ask); err != nil {
		return from, false, err
	}
	next = from
	for before := uint64(0); ; {
		m, err := nextMessage(ctx, sub, q.patience())
		if err != nil {
			return next, true, err
		}
		switch m.Header.Get("Status") {
		case "":
		case "204", "404": // the end of the page, or nothing is there
			return next, true, nil
		default:
			return next, false, fmt.Errorf("ask for a page: %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
		}
		if m.Header.Get("Nats-Last-Sequence") != strconv.FormatUint(before, 10) { // one got lost with a connection
			return next, true, nil
		}
		raw, err := direct(m)
		if err != nil {
			return next, false, err
		}
		if more, err := each(raw); err != nil || !more || raw.Sequence >= q.to {
			return next, false, err
		}
		before, next = raw.Sequence, raw.Sequence+1
	}
}

// nextMessage waits for a message as long as a server may take for it.
func nextMessage(ctx context.Context, sub *nats.Subscription, patience time.Duration) (*nats.Msg, error) {
	try, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	m, err := sub.NextMsgWithContext(try)
	if err != nil && errors.Is(context.Cause(try), errSilent) {
		return nil, errSilent
	}
	return m, err
}

// direct takes a message out of an answer.
func direct(m *nats.Msg) (*js.RawStreamMsg, error) {
	pos, err := strconv.ParseUint(m.Header.Get(js.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("answer without a position: %w", err)
	}
	stored, err := time.Parse(time.RFC3339Nano, m.Header.Get(js.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("answer without a time: %w", err)
	}
	return &js.RawStreamMsg{Subject: m.Header.Get(js.SubjectHeader), Sequence: pos, Header: m.Header, Data: m.Data, Time: stored}, nil
}
