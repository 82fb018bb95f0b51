package natsstore

import (
	"context"
	"errors"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
)

// ReadError wraps an error of reading a log with an exit status.
func ReadError(err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, js.ErrStreamNotFound):
		return exit.With(exit.NotFound, fmt.Errorf("there is no log: %w", err))
	default:
		return fmt.Errorf("%w: %w", client.ErrUnreachable, err)
	}
}
