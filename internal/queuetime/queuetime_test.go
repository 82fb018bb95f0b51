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

func TestMeter_TellsTheMeanOfTheWindowBefore(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	require.Zero(t, m.Mean(at(0)))
	m.Enter(at(0))
	m.Enter(at(20))
	m.Leave(at(30))
	m.Leave(at(100))
	require.Zero(t, m.Mean(at(199)), "the window goes on")
	require.Equal(t, 55*time.Millisecond, m.Mean(at(200)), "30 and 80 ms")
	require.Equal(t, 55*time.Millisecond, m.Mean(at(399)))
	require.Zero(t, m.Mean(at(400)), "nobody was there")
}

// A queue that grows is told of while those who stand in it are still there.
func TestMeter_TellsOfAQueueWhileItGrows(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	for ms := range 200 { // three come each millisecond, one goes
		for range 3 {
			m.Enter(at(ms))
		}
		m.Leave(at(ms))
	}
	require.InDelta(t, 200*time.Millisecond, m.Mean(at(200)), float64(5*time.Millisecond), "of 200 that were there in the middle; nobody who has left was there for longer than 134")
	require.Equal(t, 400, m.Inside())
}

// A crowd that comes to a place that nobody has left yet has been there as long as it has.
func TestMeter_GrowsAsTimePassesWhereNobodyLeaves(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	for range 64 {
		m.Enter(at(0))
	}
	require.Equal(t, 200*time.Millisecond, m.Mean(at(200)))
	require.Equal(t, 3200*time.Millisecond, m.Mean(at(3200)), "a window without an event is as long as it is")
	for range 64 {
		m.Leave(at(3200))
	}
	require.Zero(t, m.Mean(at(3400)), "it falls at once")
}

// A pause, such as a disk's that syncs, is no queue that nobody gets to the end of.
func TestMeter_TakesAPauseForOne(t *testing.T) {
	t.Parallel()
	m := queuetime.New(window)
	turn := func(ms int) { m.Leave(at(ms)); m.Enter(at(ms)) }
	for range 60 {
		m.Enter(at(0))
	}
	for ms := range 1000 { // 60 that take 60 ms each
		turn(ms)
	}
	require.InDelta(t, 60*time.Millisecond, m.Mean(at(1000)), float64(time.Millisecond))
	require.Less(t, m.Mean(at(1200)), 120*time.Millisecond, "nobody has left for 0.2 s")
	require.Less(t, m.Mean(at(1400)), 180*time.Millisecond)
	require.Greater(t, m.Mean(at(3400)), time.Second, "what lasts is no pause")
}

func TestMeter_NilMeasuresNothing(t *testing.T) {
	t.Parallel()
	var m *queuetime.Meter
	m.Enter(at(0))
	m.Leave(at(1))
	require.Zero(t, m.Mean(at(500)))
	require.Zero(t, m.Inside())
}
