package runlogtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
)

// quiet is how long the suite waits to conclude that nothing arrives.
const quiet = 150 * time.Millisecond

func next(t *testing.T, l Full) runlog.Delivery {
	t.Helper()
	d, err := l.Next(within(t))
	require.NoError(t, err)
	return d
}

func nothingNext(t *testing.T, l Full) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), quiet)
	defer cancel()
	d, err := l.Next(ctx)
	if err == nil {
		require.Failf(t, "queue is not empty", "handed out %s at %d", d.Frame().Kind, d.Frame().Pos)
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func queueHandsOutStartsAndWakes(t *testing.T, l Full) {
	c := newChain(t, l, "run-1")
	start := c.start()
	c.add(subject.Step, 1)
	wake := c.add(subject.Wake, 0)
	c.add(subject.End, 1)

	d := next(t, l)
	sameFrame(t, start, d.Frame())
	require.False(t, d.Redelivered())
	require.NoError(t, d.Extend())
	require.NoError(t, d.Ack())
	d = next(t, l)
	sameFrame(t, wake, d.Frame())
	require.NoError(t, d.Ack())
	nothingNext(t, l)
}

func queueHandsToOne(t *testing.T, l Full) {
	a, b := newChain(t, l, "run-1"), newChain(t, l, "run-2")
	a.start()
	b.start()
	first, second := next(t, l), next(t, l)
	require.NotEqual(t, first.Frame().Run, second.Frame().Run)
	nothingNext(t, l)
	require.NoError(t, first.Ack())
	require.NoError(t, second.Ack())
}

func queueRetries(t *testing.T, l Full) {
	start := newChain(t, l, "run-1").start()
	require.NoError(t, next(t, l).Retry())
	for range 2 {
		d := next(t, l)
		sameFrame(t, start, d.Frame())
		require.True(t, d.Redelivered())
		require.NoError(t, d.Retry())
	}
	require.NoError(t, next(t, l).Ack())
	nothingNext(t, l)
}

func queueEndsOnce(t *testing.T, l Full) {
	newChain(t, l, "run-1").start()
	d := next(t, l)
	require.NoError(t, d.Ack())
	require.Error(t, d.Ack())
	require.Error(t, d.Retry())
	nothingNext(t, l)
}

func queueCounts(t *testing.T, l Full) {
	depth := func(total int, handedOut uint64) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) { // an Ack is asynchronous
			d, err := l.Depth(t.Context())
			assert.NoError(c, err)
			assert.Equal(c, total, d.Waiting+d.InDelivery)
			assert.GreaterOrEqual(c, d.HandedOut, handedOut, "those that a client has fetched ahead count")
		}, patience, time.Millisecond)
	}
	depth(0, 0)
	c := newChain(t, l, "run-1")
	c.start()
	newChain(t, l, "run-2").start()
	c.add(subject.Step, 1)
	depth(2, 0)
	d := next(t, l)
	depth(2, 1)
	now, err := l.Depth(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, now.Delivered, d.Frame().Pos)
	require.NoError(t, d.Ack())
	depth(1, 1)
	require.NoError(t, next(t, l).Ack())
	depth(0, 2)
}

func queueStopsWaiting(t *testing.T, l Full) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.Next(ctx)
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(patience):
		require.Fail(t, "Next outlives its context")
	}
}
