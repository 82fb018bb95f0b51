package scalesim_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/scalesim"
)

const report = "| sync | 64 | 10000 |\n"

func measured(t *testing.T) scalesim.Measured {
	t.Helper()
	m, err := scalesim.Checked(report)
	require.NoError(t, err)
	m.IngestPerSec = 20_000 // the tests are of the simulation, not of the machine
	return m
}

var question = scalesim.Shape{Calls: 1, Frames: 3}

// small is a day of a hundred runs a second at its peak.
func small() scalesim.Day {
	d := scalesim.Billion()
	d.Runs, d.Tenants = 100*86400/d.Peak, 1000
	return d
}

// The figures of the page are those of the simulation, of what was measured last, and of
// bench/report.md.
func TestInto_WritesWhatThePageSays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, simulates a billion runs: run without -short")
	}
	page, err := os.ReadFile("../../docs/scaling.md")
	require.NoError(t, err)
	measured, err := os.ReadFile("../../bench/report.md")
	require.NoError(t, err)
	want, err := scalesim.Into(string(page), string(measured))
	require.NoError(t, err)
	require.Equal(t, want, string(page), "run make gen")
}

// So are those of the sizes.
func TestIntoSizing_WritesWhatThePageSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/kubernetes.md")
	require.NoError(t, err)
	measured, err := os.ReadFile("../../bench/report.md")
	require.NoError(t, err)
	want, err := scalesim.IntoSizing(string(page), string(measured))
	require.NoError(t, err)
	require.Equal(t, want, string(page), "run make gen")
}

// A size that is ten times another takes ten times as much, and its log is full as soon.
func TestNeeds_GrowWithTheLoad(t *testing.T) {
	t.Parallel()
	m, d := measured(t), scalesim.Billion()
	one := m.Needs(d, scalesim.Size{RunsPerSec: 1, Kept: 1e6})
	ten := m.Needs(d, scalesim.Size{RunsPerSec: 10, Kept: 10e6})
	require.InDelta(t, 10*one.HandedOut, ten.HandedOut, 1e-6)
	require.InDelta(t, 10*one.Cores["dispatcher"], ten.Cores["dispatcher"], 1e-6)
	require.InDelta(t, 10*one.Index, ten.Index, 1)
	require.InDelta(t, one.Days, ten.Days, 1e-6)
}

func TestInto_RefusesWhatHasNoPlaceForIt(t *testing.T) {
	t.Parallel()
	_, err := scalesim.Into("# Scaling\n", report)
	require.ErrorContains(t, err, "no place")
	_, err = scalesim.Checked("# Benchmarks\n")
	require.ErrorContains(t, err, "bench/report.md")
}

func TestSimulate_IsTheSameEachTime(t *testing.T) {
	t.Parallel()
	p := scalesim.Plan{Shape: question, Installations: 3, Placement: scalesim.ByHash, HandedOut: scalesim.Default}
	first := scalesim.Simulate(measured(t), small(), p)
	require.Equal(t, first, scalesim.Simulate(measured(t), small(), p))
	require.InDelta(t, 100*3600, first.Runs, 3000)
	other := small()
	other.Seed++
	require.NotEqual(t, first, scalesim.Simulate(measured(t), other, p))
}

// By Little's law as many are handed out as come while one is held.
func TestSimulate_HoldsAsManyAsComeMeanwhile(t *testing.T) {
	t.Parallel()
	out := scalesim.Simulate(measured(t), small(), scalesim.Plan{
		Shape:         question,
		Installations: 1,
		Placement:     scalesim.BySize,
		HandedOut:     scalesim.Default,
	})
	const held = 0.5*1 + 0.25*2 + 0.15*4 + 0.07*8 + 0.03*20
	require.InEpsilon(t, 100*held, float64(out.Busiest.HandedOut), 0.35, "the most in a second is more than the mean")
	require.Zero(t, out.Max)
	require.Zero(t, out.Left)
}

func TestSimulate_KeepsTheLimits(t *testing.T) {
	t.Parallel()
	m := measured(t)
	full := scalesim.Simulate(m, small(), scalesim.Plan{
		Shape:         question,
		Installations: 1,
		Placement:     scalesim.BySize,
		HandedOut:     150,
	})
	require.Equal(t, 150, full.Busiest.HandedOut)
	require.Positive(t, full.Left, "more come than are handed out")
	require.Greater(t, full.P99, 600, "and wait ever longer")

	m.AppendsPerSec = 250
	slow := scalesim.Simulate(m, small(), scalesim.Plan{
		Shape:         question,
		Installations: 1,
		Placement:     scalesim.BySize,
		HandedOut:     scalesim.Default,
	})
	require.LessOrEqual(t, float64(slow.Busiest.Frames), m.FramesPerSec(small()))
	require.Positive(t, slow.Left, "the log takes 175 frames of 300 a second")
}

func TestSimulate_ATableOfTenantsLoadsInstallationsMoreEvenlyThanAHash(t *testing.T) {
	t.Parallel()
	at := func(by scalesim.Placement) int {
		return scalesim.Simulate(measured(t), small(), scalesim.Plan{
			Shape:         question,
			Installations: 8,
			Placement:     by,
			HandedOut:     scalesim.Default,
		}).Busiest.HandedOut
	}
	require.Less(t, at(scalesim.BySize), at(scalesim.ByHash))
}
