// Package jetstream keeps the audit log in a NATS JetStream stream of its own, from
// which nothing can be deleted: one subject per tenant and list, one message per append.
//
// Every append carries the position it expects the subject to end at. The server checks
// that under its own lock, so of several processes one is first.
package jetstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/natslink"
)

const (
	// Stream is the stream's name.
	Stream = "WAYBILL_AUDIT"
	prefix = "waybill.audit."
	// firstHeader holds the sequence of a message's first line, tryHeader tells an
	// append that is tried again from another one.
	firstHeader = "Waybill-First"
	tryHeader   = "Waybill-Append"
	// retryPause is between two tries of an append whose outcome is not known.
	retryPause = 50 * time.Millisecond
	// tryTimeout bounds one try; the caller's context bounds all.
	tryTimeout = 2 * time.Second
)

// Store is an audit.Store. It is safe for concurrent use.
type Store struct {
	js     js.JetStream
	stream js.Stream
	link   *natslink.Link
	onDisk natslink.OnDisk
}

// Open makes the stream, or checks that the one there is as it must be. onDisk is for a server that
// does not sync before it acknowledges.
func Open(ctx context.Context, nc *nats.Conn, replicas int, onDisk natslink.OnDisk) (*Store, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	s, err := natslink.Stream(ctx, api, js.StreamConfig{
		Name: Stream, Description: "audit log: one message per append, nothing is ever deleted",
		Subjects: []string{prefix + "*.*"}, Storage: js.FileStorage, Retention: js.LimitsPolicy, Replicas: replicas,
		Duplicates: time.Second, DenyDelete: true, DenyPurge: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open audit log: stream %s: %w", Stream, err)
	}
	return &Store{js: api, stream: s, link: natslink.Watch(nc), onDisk: onDisk}, nil
}

// Attach opens the store that is there for a reader: it makes nothing and changes nothing.
// Errors: js.ErrStreamNotFound where there is none.
func Attach(ctx context.Context, nc *nats.Conn) (*Store, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	s, err := natslink.Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, Stream) })
	if err != nil {
		return nil, fmt.Errorf("open audit log: stream %s: %w", Stream, err)
	}
	return &Store{js: api, stream: s, link: natslink.Watch(nc)}, nil
}

func subjectOf(l audit.List) string { return prefix + l.Tenant + "." + string(l.Kind) }

// Last returns a list's last message; see audit.Store.
func (s *Store) Last(ctx context.Context, l audit.List) (*audit.Message, error) {
	var raw *js.RawStreamMsg
	err := s.link.Ask(ctx, func(ctx context.Context) (err error) {
		raw, err = s.stream.GetLastMsgForSubject(ctx, subjectOf(l))
		return err
	})
	return message(raw, err)
}

// next is the first message of a list at a position or later; nil if there is none.
func (s *Store) next(ctx context.Context, l audit.List, pos uint64) (*audit.Message, error) {
	raw, err := s.get(ctx, l, pos)
	return message(raw, err)
}

func (s *Store) get(ctx context.Context, l audit.List, pos uint64) (raw *js.RawStreamMsg, err error) {
	err = s.link.Ask(ctx, func(ctx context.Context) (err error) {
		raw, err = s.stream.GetMsg(ctx, pos, js.WithGetMsgSubject(subjectOf(l)))
		return err
	})
	return raw, err
}

func message(raw *js.RawStreamMsg, err error) (*audit.Message, error) {
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return nil, nil //nolint:nilnil // an empty list has no last message
	case err != nil:
		return nil, unavailable("read", err)
	}
	return parse(raw.Sequence, raw.Header.Get(firstHeader), raw.Data)
}

func parse(pos uint64, first string, body []byte) (*audit.Message, error) {
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil || len(body) == 0 {
		return nil, fmt.Errorf("%w: message %d of stream %s is no append", audit.ErrDamaged, pos, Stream)
	}
	return &audit.Message{Pos: pos, First: n, Lines: bytes.Split(body, []byte("\n"))}, nil
}

// Append adds lines; see audit.Store.
func (s *Store) Append(ctx context.Context, l audit.List, first int64, lines [][]byte, after uint64) (uint64, error) {
	msg := nats.NewMsg(subjectOf(l))
	msg.Data = bytes.Join(lines, []byte("\n"))
	msg.Header.Set(firstHeader, strconv.FormatInt(first, 10))
	msg.Header.Set(tryHeader, rand.Text())
	msg.Header.Set(js.ExpectedLastSubjSeqHeader, strconv.FormatUint(after, 10))
	for {
		pos, err := s.publish(ctx, msg)
		switch {
		case err == nil:
			return pos, s.keep(ctx, pos)
		case natslink.Conflict(err):
			pos, err := s.settle(ctx, l, after, msg.Header.Get(tryHeader))
			if kerr := s.keep(ctx, pos); kerr != nil { // also what another was first with
				return 0, kerr
			}
			return pos, err
		case ctx.Err() != nil || errors.Is(err, nats.ErrMaxPayload):
			return 0, unavailable("append", err)
		}
		// Whether it was stored is not known: sent again, it conflicts if it was.
		select {
		case <-ctx.Done():
			return 0, unavailable("append", err)
		case <-time.After(retryPause):
		}
	}
}

// keep waits until an append is on the disk.
func (s *Store) keep(ctx context.Context, pos uint64) error {
	if err := s.onDisk.Wait(ctx, Stream, pos); err != nil {
		return unavailable("append", err)
	}
	return nil
}

func (s *Store) publish(ctx context.Context, msg *nats.Msg) (pos uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	err = s.link.Once(ctx, func(ctx context.Context) error {
		ack, err := s.js.PublishMsg(ctx, msg, js.WithRetryAttempts(0))
		if err == nil {
			pos = ack.Sequence
		}
		return err
	})
	return pos, err
}

// settle decides a failed expectation: was it our own earlier try?
func (s *Store) settle(ctx context.Context, l audit.List, after uint64, try string) (uint64, error) {
	raw, err := s.get(ctx, l, after+1)
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return 0, audit.ErrConflict
	case err != nil:
		return 0, unavailable("append", err)
	case raw.Header.Get(tryHeader) == try:
		return raw.Sequence, nil
	}
	return 0, audit.ErrConflict
}

// Tenants tells who has entries; see audit.Store.
func (s *Store) Tenants(ctx context.Context) (map[string]uint64, error) {
	const all = prefix + "*." + string(audit.Entries)
	var info *js.StreamInfo
	err := s.link.Ask(ctx, func(ctx context.Context) (err error) {
		info, err = s.stream.Info(ctx, js.WithSubjectFilter(all))
		return err
	})
	if err != nil {
		return nil, unavailable("list tenants", err)
	}
	out := make(map[string]uint64, len(info.State.Subjects))
	for subject, n := range info.State.Subjects {
		tenant, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		out[tenant] = n
	}
	return out, nil
}

func unavailable(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", audit.ErrUnavailable, what, err)
}
