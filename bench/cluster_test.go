package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClusterFigures_CompareWithTheTargets(t *testing.T) {
	t.Parallel()
	f := clusterFigures{
		scale:    []scaleRow{{dispatchers: 1, perSec: 40}, {dispatchers: 2, perSec: 72}, {dispatchers: 4, perSec: 143}},
		cost:     []costRow{{held: 1000, cpu: 100}, {held: 10_000, cpu: 114}, {held: 100_000, cpu: 116}},
		recovery: samples{time.Second, recoveryTarget}, kills: 1,
		overload: overloadRow{
			turns:   []turn{{peak: 90, offered: 300, good: 70}, {peak: 110, offered: 300, good: 90}},
			largest: "gateway",
			mb:      257,
		},
	}
	var met []bool
	for _, g := range f.figures() {
		met = append(met, g.met)
	}
	require.Equal(t, []bool{true, true, false, true, true, false, true, true, false, false, false, false, false, true, false}, met,
		"dispatchers, held runs, recovery, goodput, five without a target, killed, memory")
	f.recovery = nil
	require.False(t, f.figures()[6].met, "nothing was measured")
	var doc strings.Builder
	f.render(func(format string, args ...any) { fmt.Fprintf(&doc, format, args...) })
	require.Contains(t, doc.String(), "one dispatcher makes\nat most 40 calls a second")
	require.NotContains(t, doc.String(), "%!")
}

// The rate counts calls while the queue is full, and excludes its start and end.
func TestSlow_CountsTheMiddle(t *testing.T) {
	t.Parallel()
	s := &slow{}
	for i := range 100 {
		at := time.Duration(i) * 10 * time.Millisecond
		if i >= 90 { // the last ones, with an empty queue behind them
			at += time.Duration(i-89) * time.Second
		}
		s.asked = append(s.asked, at)
	}
	require.InDelta(t, 100, s.rate(), 0.1)
	require.Equal(t, 100, s.calls())
}

// Goodput excludes runs whose client has given up, and runs completed after the overload.
func TestUseful_ExcludesLateRuns(t *testing.T) {
	t.Parallel()
	due := time.Unix(1000, 0)
	ended := due.Add(10 * time.Second)
	require.True(t, useful(due, due.Add(patience), ended))
	require.False(t, useful(due, due.Add(patience+1), ended))
	late := ended.Add(-patience / 2)
	require.True(t, useful(late, ended, ended))
	require.False(t, useful(late, ended.Add(1), ended))
}

func TestOverload_AKillOrNoLimitMissesTheTarget(t *testing.T) {
	t.Parallel()
	for killed, met := range map[int]bool{0: true, 2: false, -1: false} {
		require.Equal(t, met, overloadRow{killed: killed}.killedFigure().met, killed)
	}
}

func TestOOMKills_ReadsBothVersions(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "low 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 0\n"} {
		n, err := oomKills(text)
		require.NoError(t, err)
		require.Equal(t, 3, n)
	}
	_, err := oomKills("usage 5\n")
	require.Error(t, err)
}
