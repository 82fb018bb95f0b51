// Package jetstream stores the audit log in its own NATS JetStream stream, which denies
// deletion: one subject per tenant and list, one message per append.
//
// Every append has the expected last position of the subject. The server checks it under
// its lock, so only one of several racing appends succeeds.
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
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// Stream is the stream's name.
	Stream = "WAYBILL_AUDIT"
	prefix = "waybill.audit."
	// firstHeader has the sequence of a message's first line. tryHeader identifies an
	// append, so that a retry recognises its earlier attempt.
	firstHeader = "Waybill-First"
	tryHeader   = "Waybill-Append"
	// retryPause is the pause between two attempts of an append with an unknown result.
	retryPause = 50 * time.Millisecond
	// tryTimeout limits one attempt; the caller's context limits all.
	tryTimeout = 2 * time.Second
)

// Store is an audit.Store. It is safe for concurrent use.
type Store struct {
	js     js.JetStream
	stream js.Stream
	link   *natslink.Link
	onDisk natslink.OnDisk
}

// Open creates the stream, or checks the configuration of the existing one. onDisk is for a
// server that acknowledges before it syncs.
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

// Attach opens an existing store for reading. It changes nothing. Errors:
// js.ErrStreamNotFound if there is none.
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

// TenantOf returns the tenant of a subject; ok is false if no record has such a subject.
func TenantOf(subj string) (tenant string, ok bool) {
	tenant, kind, _ := strings.Cut(strings.TrimPrefix(subj, prefix), ".")
	l := audit.List{Tenant: tenant, Kind: audit.Kind(kind)}
	return tenant, subject.Token(tenant) && (l.Kind == audit.Entries || l.Kind == audit.Checkpoints) && subj == subjectOf(l)
}

// Last returns a list's last message; see audit.Store.
func (s *Store) Last(ctx context.Context, l audit.List) (*audit.Message, error) {
	var raw *js.RawStreamMsg
	err := s.link.Ask(ctx, func(ctx context.Context) (err error) {
		raw, err = s.stream.GetLastMsgForSubject(ctx, subjectOf(l))
		return err
	})
	return message(raw, err)
}

// next returns the first message of a list at or after a position; nil if there is none.
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
		return nil, fmt.Errorf("%w: message %d of stream %s is not an append", audit.ErrDamaged, pos, Stream)
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
	var err error
	for range retry.Every(retryPause).Tries(ctx) {
		var pos uint64
		pos, err = s.publish(ctx, msg)
		switch {
		case err == nil:
			return pos, s.syncToDisk(ctx, pos)
		case natslink.Conflict(err):
			pos, err := s.resolveConflict(ctx, l, after, msg.Header.Get(tryHeader))
			if kerr := s.syncToDisk(ctx, pos); kerr != nil { // also another writer's message
				return 0, kerr
			}
			return pos, err
		case ctx.Err() != nil || errors.Is(err, nats.ErrMaxPayload):
			return 0, unavailable("append", err)
		}
		// The result is unknown. If the message was stored, the retry conflicts.
	}
	return 0, unavailable("append", err)
}

// syncToDisk waits until an append is synced to disk.
func (s *Store) syncToDisk(ctx context.Context, pos uint64) error {
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

// resolveConflict checks whether a conflicting message is our own earlier attempt.
func (s *Store) resolveConflict(ctx context.Context, l audit.List, after uint64, try string) (uint64, error) {
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

// Tenants counts messages per tenant; see audit.Store.
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
