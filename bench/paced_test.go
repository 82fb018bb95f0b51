package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDrive_CountsFromTheDueTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := make(chan struct{}, 1) // a server that handles one call at a time, slower than calls arrive
		latency, late, err := drive(t.Context(), time.Second/pace, 100, func(time.Time) error {
			one <- struct{}{}
			time.Sleep(2 * time.Second / pace)
			<-one
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, time.Duration(0), late.sorted().percentile(100), "calls are made in time, independent of the answers")
		latency.sorted()
		require.Equal(t, 2*time.Second/pace, latency.percentile(0))
		require.Equal(t, 101*time.Second/pace, latency.percentile(100), "the latency of the last call includes the queue before it")
	})
}

func TestDrive_ReportsFailuresAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		_, _, err := drive(t.Context(), time.Second/pace, 3, func(time.Time) error { return broken })
		require.ErrorIs(t, err, broken)

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second/pace)
		defer cancel()
		_, _, err = drive(ctx, time.Second/pace, 1000, func(time.Time) error { return nil })
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestLoad_ContinuesUntilOneCallIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		res, err := load(t.Context(), 2, 10*time.Millisecond, func(context.Context) error {
			time.Sleep(time.Second) // as on a busy machine
			return nil
		})
		require.NoError(t, err)
		require.NotEmpty(t, res.All)
		require.Equal(t, time.Second, res.P50)
		require.InDelta(t, 1, res.PerSec, 0.1, "the rate counts the elapsed time, not the requested time")
	})
}
