package natslink

import (
	"context"
	"errors"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// Codes of the server for a write that expected something else than there is. Of several
// copies it says undecided where another write is on its way, which may yet come to nothing:
// nobody can read that one, and nobody may take it for done.
const (
	codeConflict  = 10071
	codeUndecided = 10164
)

// How long a write waits for another, and how often it looks.
const (
	decideWithin = 5 * time.Second
	decideEvery  = 3 * time.Millisecond
)

// Conflict reports that a write was refused because another one was there before.
func Conflict(err error) bool { return codeOf(err) == codeConflict }

// Undecided reports that a write was refused because another one is on its way.
func Undecided(err error) bool { return codeOf(err) == codeUndecided }

func codeOf(err error) js.ErrorCode {
	if api, ok := errors.AsType[*js.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// Decided calls f, a write that expects something, again while another one is on its way.
func Decided(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, decideWithin)
	defer cancel()
	for {
		err := f(ctx)
		if !Undecided(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another write is on its way: %w", ctx.Err())
		case <-time.After(decideEvery):
		}
	}
}
