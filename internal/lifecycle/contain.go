package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"waybill.dev/waybill/internal/obs"
)

// ErrPanic reports a panic recovered by Contain. Its value and stack are only in the process log,
// because they may hold data of a tenant.
var ErrPanic = errors.New("internal panic; the process log has the stack")

// Contain runs f and returns ErrPanic if it panics. attrs are added to the log
// entry.
func Contain(log *slog.Logger, part string, f func() error, attrs ...any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic recovered", append([]any{
				"part", part, "panic", obs.Panic(p), "stack", string(debug.Stack()),
			}, attrs...)...)
			err = ErrPanic
		}
	}()
	return f()
}

// restartPause is the pause before a loop that panicked starts again.
const restartPause = time.Second

// Restart runs a loop and starts it again after a panic, until ctx ends. An
// error that the loop returns ends it.
func Restart(ctx context.Context, log *slog.Logger, part string, run func(ctx context.Context) error) error {
	for {
		err := Contain(log, part, func() error { return run(ctx) })
		if !errors.Is(err, ErrPanic) {
			return err
		}
		if !Wait(ctx, restartPause) {
			return ctx.Err()
		}
	}
}
