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
	// pageMessages is the number of messages per request: a server stores nothing while it searches
	// for them, and a server other than the client's sends none until it has all. pageBytes limits
	// the bytes: the message that reaches it is the last.
	pageMessages = 64
	pageBytes    = 1 << 20
	// shortBytes limits the bytes of a short page.
	shortBytes = 64 << 10
	// pageTry limits the wait for a message of a page: a server that stops sends no error. It may
	// also still be searching for distant messages. After a timeout an eighth as many are
	// requested, finally one. After a fast answer (an eighth of the time) more are requested again.
	// A single message gets more time. All attempts together take less than two seconds, after
	// which callers give up.
	pageTry   = 400 * time.Millisecond
	singleTry = time.Second
	pageFewer = 8
	// How often a server is retried that lacks what another one has, and the pause.
	pageTries = 4
	pagePause = 10 * time.Millisecond
)

// ErrLacking means that a server lacks records that another server has, or had.
var ErrLacking = errors.New("the server lacks some of what was stored")

// Pages reads like Scan, but in pages, from any server with a copy (NATS ADR-31). A cluster must
// agree on each consumer, which takes long while one of its servers is down. With a single copy,
// use Scan: the server stores nothing until it has found a page. The stream must allow direct
// reads. If there is no message at the last position, the next one is returned.
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

// ShortPage reads the first messages of a subject from a position on, from any server with a copy:
// as many as arrive for one small request.
func ShortPage(ctx context.Context, nc *nats.Conn, stream, subject string, from uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	_, _, err := page(ctx, nc, question{stream, subject, from, math.MaxUint64, pageMessages, shortBytes}, each)
	if errors.Is(err, errSilent) {
		return nil
	}
	return err
}

// errSilent: a server did not answer, or stopped within its answer.
var errSilent = errors.New("the server did not answer")

// question is the request for a page: a number of messages of a subject, from a position on.
// Messages after the last position are not needed.
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

// page reads a page, or the part of it that arrives. next is the start of the following page.
// Errors: errSilent.
func page(ctx context.Context, nc *nats.Conn, q question, each func(*js.RawStreamMsg) (bool, error)) (next uint64, more bool, err error) {
	from := q.from
	ask, err := json.Marshal(map[string]any{
		"seq":          from,
		"next_by_subj": q.subject,
		"batch":        q.batch,
		"max_bytes":    q.bytes,
	})
	if err != nil {
		return from, false, err
	}
	inbox := nc.NewInbox() // a separate inbox; on the shared one the answer would arrive twice
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
		case "204", "404": // end of the page, or no messages
			return next, true, nil
		default:
			return next, false, fmt.Errorf("ask for a page: %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
		}
		if m.Header.Get("Nats-Last-Sequence") != strconv.FormatUint(before, 10) { // a message was lost with a connection
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

// nextMessage waits for a message up to patience.
func nextMessage(ctx context.Context, sub *nats.Subscription, patience time.Duration) (*nats.Msg, error) {
	try, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	m, err := sub.NextMsgWithContext(try)
	if err != nil && errors.Is(context.Cause(try), errSilent) {
		return nil, errSilent
	}
	return m, err
}

// direct extracts the message from an answer.
func direct(m *nats.Msg) (*js.RawStreamMsg, error) {
	pos, err := strconv.ParseUint(m.Header.Get(js.SequenceHeader), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("answer without a position: %w", err)
	}
	stored, err := time.Parse(time.RFC3339Nano, m.Header.Get(js.TimeStampHeaer))
	if err != nil {
		return nil, fmt.Errorf("answer without a time: %w", err)
	}
	return &js.RawStreamMsg{
		Subject:  m.Header.Get(js.SubjectHeader),
		Sequence: pos,
		Header:   m.Header,
		Data:     m.Data,
		Time:     stored,
	}, nil
}
