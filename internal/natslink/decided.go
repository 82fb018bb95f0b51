package natslink

import (
	"context"
	"errors"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/retry"
)

// Server codes for a write whose expectation failed. With several replicas the server returns
// undecided if another write is in progress, which may still fail: that write can neither be read
// nor counted as done.
const (
	codeConflict  = 10071
	codeUndecided = 10164
)

// How long a write waits for another, and how often it retries.
const (
	decideWithin = 5 * time.Second
	decideEvery  = 3 * time.Millisecond
)

// Conflict reports whether a write was rejected because another one was first.
func Conflict(err error) bool { return codeOf(err) == codeConflict }

// Undecided reports whether a write was rejected because another one is in progress.
func Undecided(err error) bool { return codeOf(err) == codeUndecided }

func codeOf(err error) js.ErrorCode {
	if api, ok := errors.AsType[*js.APIError](err); ok {
		return api.ErrorCode
	}
	return 0
}

// Decided calls f, a write with an expectation, and retries while another write is in progress.
func Decided(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, decideWithin)
	defer cancel()
	for range retry.Every(decideEvery).Tries(ctx) {
		if err := f(ctx); !Undecided(err) {
			return err
		}
	}
	return fmt.Errorf("another write is on its way: %w", ctx.Err())
}
