package natslink

import (
	"context"
	"errors"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"
)

// ErrDenied means that a stream does not allow the deletion of messages. A server never takes this
// setting back.
var ErrDenied = errors.New("the stream does not allow the deletion of messages")

// Erasable reports whether messages of a stream may be deleted.
func Erasable(s js.Stream) bool { return !s.CachedInfo().Config.DenyDelete }

// EraseMessage deletes a message and makes the server overwrite its bytes in the file. A message that
// is gone is not an error. s must read from the leader. Errors: ErrDenied, and the client's.
func EraseMessage(ctx context.Context, s js.Stream, sequence uint64) error {
	return remove(ctx, s, sequence, s.SecureDeleteMsg)
}

// DropMessage deletes a message. Its bytes stay in the file until the server compacts it. The rest is as
// for EraseMessage.
func DropMessage(ctx context.Context, s js.Stream, sequence uint64) error {
	return remove(ctx, s, sequence, s.DeleteMsg)
}

func remove(ctx context.Context, s js.Stream, sequence uint64, by func(context.Context, uint64) error) error {
	if !Erasable(s) {
		return fmt.Errorf("%w: %s", ErrDenied, s.CachedInfo().Config.Name)
	}
	err := by(ctx, sequence)
	if err == nil {
		return nil
	}
	if _, gone := s.GetMsg(ctx, sequence); errors.Is(gone, js.ErrMsgNotFound) {
		return nil
	}
	return fmt.Errorf("erase message %d of %s: %w", sequence, s.CachedInfo().Config.Name, err)
}

// Erase erases the messages of a subject, which may have wildcards; see EraseMessage.
func Erase(ctx context.Context, s js.Stream, subject string) error {
	for next := uint64(1); ; {
		m, err := s.GetMsg(ctx, next, js.WithGetMsgSubject(subject))
		if errors.Is(err, js.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("erase %s: %w", subject, err)
		}
		if err := EraseMessage(ctx, s, m.Sequence); err != nil {
			return err
		}
		next = m.Sequence + 1
	}
}
