package queuetime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/queuetime"
)

const window = 200 * time.Millisecond

var start = time.Unix(1000, 0)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

func TestMeter_ReturnsTheMeanOfThePreviousWindow(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	require.Zero(t, m.Mean(at(0)))
	m.Enter(at(0))
	m.Enter(at(20))
	m.Leave(at(30))
	m.Leave(at(100))
	require.Zero(t, m.Mean(at(199)), "the first window has not ended")
	require.Equal(t, 55*time.Millisecond, m.Mean(at(200)), "30 and 80 ms")
	require.Equal(t, 55*time.Millisecond, m.Mean(at(399)))
	require.Zero(t, m.Mean(at(400)), "the queue was empty")
}

// A growing queue shows before its items leave.
func TestMeter_ShowsAQueueWhileItGrows(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	for ms := range 200 { // three enter each millisecond, one leaves
		for range 3 {
			m.Enter(at(ms))
		}
		m.Leave(at(ms))
	}
	require.InDelta(t, 200*time.Millisecond, m.Mean(at(200)), float64(5*time.Millisecond), "200 items inside on average; the slowest item that left took 134 ms")
	require.Equal(t, 400, m.Inside())
}

// Without departures, the mean grows with the age of the items.
func TestMeter_GrowsWithTimeWithoutDepartures(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	for range 64 {
		m.Enter(at(0))
	}
	require.Equal(t, 200*time.Millisecond, m.Mean(at(200)))
	require.Equal(t, 3200*time.Millisecond, m.Mean(at(3200)), "a window without events extends to the next call")
	for range 64 {
		m.Leave(at(3200))
	}
	require.Zero(t, m.Mean(at(3400)), "it falls to zero in the next window")
}

// A short pause, such as a disk sync, does not count as a queue.
func TestMeter_IgnoresAShortPause(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	turn := func(ms int) { m.Leave(at(ms)); m.Enter(at(ms)) }
	for range 60 {
		m.Enter(at(0))
	}
	for ms := range 1000 { // 60 items that take 60 ms each
		turn(ms)
	}
	require.InDelta(t, 60*time.Millisecond, m.Mean(at(1000)), float64(time.Millisecond))
	require.Less(t, m.Mean(at(1200)), 120*time.Millisecond, "no departure for 0.2 s")
	require.Less(t, m.Mean(at(1400)), 180*time.Millisecond)
	require.Greater(t, m.Mean(at(3400)), time.Second, "a long pause counts as a queue")
}

func TestMeter_NilIsDisabled(t *testing.T) {
	t.Parallel()
	var m *queuetime.Meter
	m.Enter(at(0))
	m.Leave(at(1))
	require.Zero(t, m.Mean(at(500)))
	require.Zero(t, m.Inside())
}
