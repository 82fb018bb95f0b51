package natsstore

import (
	"context"
	"errors"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
)

// ReadError gives an error of a log that cannot be read the exit status of its kind.
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
