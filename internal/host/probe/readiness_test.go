package probe

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadiness_EndsBeforeTheService(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	var s Serving
	s.Set(ErrStarting)
	var changes []error
	r := Readiness{
		Serving: &s, Log: slog.New(slog.DiscardHandler),
		Check:   func(context.Context) error { return nil },
		Changed: func(err error) { changes = append(changes, err) },
		First: func() error {
			require.NoError(t, s.Reason())
			end()
			return nil
		},
	}
	require.NoError(t, r.Watch(ctx))
	require.Equal(t, []error{nil, errEnding}, changes)
	require.ErrorIs(t, s.Reason(), errEnding)
}
