package natslink_test

import (
	"context"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink"
)

var (
	errConflict  = &js.APIError{Code: 400, ErrorCode: js.JSErrCodeStreamWrongLastSequence}
	errUndecided = &js.APIError{Code: 400, ErrorCode: js.JSErrCodeStreamWrongLastSequenceConstant}
)

func TestDecided_WaitsForTheOtherWrite(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]error{"it came to nothing": nil, "it was first": errConflict} {
		answers := []error{errUndecided, errUndecided, last}
		err := natslink.Decided(t.Context(), func(context.Context) error {
			err := answers[0]
			answers = answers[1:]
			return err
		})
		require.Equal(t, last, err, name)
		require.Empty(t, answers, name)
	}
	require.True(t, natslink.Conflict(errConflict))
	require.False(t, natslink.Conflict(errUndecided))
}

func TestDecided_ReturnsTheErrorOfItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := natslink.Decided(ctx, func(context.Context) error {
		cancel()
		return errUndecided
	})
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, natslink.Conflict(err))
}
