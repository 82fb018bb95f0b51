package callguard_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/tool"
	toolbound "waybill.dev/waybill/services/dispatcher/tool/outbound"
)

type forbidden struct{ t *testing.T }

func (f forbidden) Run(context.Context, model.Task, model.Journal) model.Result {
	f.t.Fatal("asked although external calls are forbidden")
	return model.Result{}
}

// Each client checks the guard itself, independent of its callers.
func TestForbid_BlocksEveryClient(t *testing.T) {
	t.Parallel()
	require.NoError(t, callguard.Check(t.Context()))
	ctx, cancel := context.WithCancel(callguard.Forbid(t.Context()))
	defer cancel()
	require.ErrorIs(t, callguard.Check(ctx), callguard.ErrForbidden)

	base, err := toolbound.ParseBase("http://127.0.0.1:1")
	require.NoError(t, err)
	for _, client := range []*http.Client{
		outbound.NewClient(provider.DefaultTimeouts(), outbound.Extras{}),
		toolbound.New(toolbound.Config{Base: base}),
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1/", http.NoBody)
		require.NoError(t, err)
		res, err := client.Do(req)
		require.ErrorIs(t, err, callguard.ErrForbidden)
		if res != nil {
			require.NoError(t, res.Body.Close())
		}
	}
	res := tool.Router{Models: forbidden{t}}.Run(ctx, model.Task{}, nil)
	require.ErrorIs(t, res.Interrupted, callguard.ErrForbidden)
}

// guarded returns a context with a guard, and functions that end its permission and its lease.
func guarded(t *testing.T, lease func(ctx context.Context) error) (ctx context.Context, quieten func(error)) {
	t.Helper()
	quiet, quieten := context.WithCancelCause(t.Context())
	t.Cleanup(func() { quieten(nil) })
	return callguard.With(t.Context(), callguard.Guard{Quiet: quiet, Await: lease}), quieten
}

func valid(context.Context) error { return nil }

var errDrains = errors.New("drains")

func TestBegin_FailsOnceNoCallMayBegin(t *testing.T) {
	t.Parallel()
	require.NoError(t, callguard.Begin(t.Context()), "without a guard")
	ctx, quieten := guarded(t, valid)
	require.NoError(t, callguard.Begin(ctx))
	waiting, cancel := callguard.Waiting(ctx)
	defer cancel()
	quieten(errDrains)
	<-waiting.Done()
	for _, err := range []error{callguard.Begin(ctx), context.Cause(waiting)} {
		require.ErrorIs(t, err, callguard.ErrNotBegun)
		require.ErrorIs(t, err, errDrains)
	}
	require.NoError(t, ctx.Err(), "a call in flight continues")
	require.NoError(t, callguard.Begin(callguard.Completing(ctx)), "it completes an answer")
	require.ErrorIs(t, callguard.Begin(callguard.Forbid(ctx)), callguard.ErrForbidden)
}

// A process that does not own its runs begins nothing, also to complete an answer.
func TestBegin_WaitsForTheLease(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		lease func(ctx context.Context) error
		end   func(quieten func(error), cancel context.CancelFunc)
		want  error
	}{
		"until it is lost":    {func(context.Context) error { return lost }, nil, lost},
		"until the drain":     {awaitForever, func(quieten func(error), _ context.CancelFunc) { quieten(errDrains) }, errDrains},
		"until the call ends": {awaitForever, func(_ func(error), cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, quieten := guarded(t, c.lease)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				got := make(chan error, 1)
				go func() { got <- callguard.Begin(ctx) }()
				synctest.Wait()
				if c.end != nil {
					require.Empty(t, got, "it waits")
					c.end(quieten, cancel)
				}
				err := <-got
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, err, callguard.ErrNotBegun)
			})
		})
	}
}

func awaitForever(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
