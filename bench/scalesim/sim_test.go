package scalesim_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/bench/scalesim"
)

const report = "| sync | 64 | 10000 |\n"

// measured has fixed rates, so that the tests of the simulation do not depend on the machine that
// wrote measured.json.
func measured(t *testing.T) scalesim.Measured {
	t.Helper()
	m, err := scalesim.Load(report)
	require.NoError(t, err)
	m.IngestPerSec = 20_000
	return m
}

var question = scalesim.Shape{Calls: 1, Frames: 3}

// smallDay has a hundred runs a second at its peak.
func smallDay() scalesim.Day {
	d := scalesim.Billion()
	d.Runs, d.Tenants = 100*86400/d.Peak, 1000
	return d
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// latest are the measurements of the repository.
func latest(t *testing.T) scalesim.Measured {
	t.Helper()
	m, err := scalesim.Load(read(t, "../report.md"))
	require.NoError(t, err)
	return m
}

func TestInsertScaling_ThePageIsUpToDate(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, simulates a billion runs: run without -short")
	}
	page := read(t, "../../docs/scaling.md")
	want, err := latest(t).InsertScaling(page)
	require.NoError(t, err)
	require.Equal(t, want, page, "run make gen")
}

func TestInsertSizes_ThePageIsUpToDate(t *testing.T) {
	t.Parallel()
	page := read(t, "../../docs/kubernetes.md")
	want, err := latest(t).InsertSizes(page)
	require.NoError(t, err)
	require.Equal(t, want, page, "run make gen")
}

func TestNeedsJSON_IsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := latest(t).NeedsJSON()
	require.NoError(t, err)
	require.Equal(t, string(want), read(t, "needs.json"), "run make gen")
}

func TestNeeds_GrowLinearlyWithTheLoad(t *testing.T) {
	t.Parallel()
	m, d := measured(t), scalesim.Billion()
	one := m.Needs(d, scalesim.Size{RunsPerSec: 1, Kept: 1e6})
	ten := m.Needs(d, scalesim.Size{RunsPerSec: 10, Kept: 10e6})
	require.InDelta(t, 10*one.HandedOut, ten.HandedOut, 1e-6)
	require.InDelta(t, 10*one.Cores["dispatcher"], ten.Cores["dispatcher"], 1e-6)
	require.InDelta(t, 10*one.Index, ten.Index, 1)
	require.InDelta(t, one.Days, ten.Days, 1e-6)
}

func TestInsert_NeedsTheLinesAroundTheGeneratedText(t *testing.T) {
	t.Parallel()
	_, err := measured(t).InsertScaling("# Scaling\n")
	require.ErrorContains(t, err, "simulated: make gen")
	_, err = measured(t).InsertSizes("# Kubernetes\n")
	require.ErrorContains(t, err, "sizes: make gen")
}

func TestLoad_NeedsTheFrameRateOfTheReport(t *testing.T) {
	t.Parallel()
	_, err := scalesim.Load("# Benchmarks\n")
	require.ErrorContains(t, err, "bench/report.md")
}

func TestSimulate_IsReproducible(t *testing.T) {
	t.Parallel()
	p := scalesim.Plan{
		Shape:         question,
		Installations: 3,
		Placement:     scalesim.ByHash,
		MaxHandedOut:  scalesim.DefaultMaxHandedOut,
	}
	first := scalesim.Simulate(measured(t), smallDay(), p)
	require.Equal(t, first, scalesim.Simulate(measured(t), smallDay(), p))
	require.InDelta(t, 100*3600, first.Runs, 3000)
	other := smallDay()
	other.Seed++
	require.NotEqual(t, first, scalesim.Simulate(measured(t), other, p))
}

// Little's law: runs held = arrival rate × mean hold time.
func TestSimulate_HeldRunsFollowLittlesLaw(t *testing.T) {
	t.Parallel()
	out := scalesim.Simulate(measured(t), smallDay(), scalesim.Plan{
		Shape:         question,
		Installations: 1,
		Placement:     scalesim.BySize,
		MaxHandedOut:  scalesim.DefaultMaxHandedOut,
	})
	const meanHold = 0.5*1 + 0.25*2 + 0.15*4 + 0.07*8 + 0.03*20
	require.InEpsilon(t, 100*meanHold, float64(out.Busiest.HandedOut), 0.35, "the peak is above the mean")
	require.Zero(t, out.Max)
	require.Zero(t, out.Left)
}

func TestSimulate_KeepsTheLimits(t *testing.T) {
	t.Parallel()
	m := measured(t)
	full := scalesim.Simulate(m, smallDay(), scalesim.Plan{
		Shape:         question,
		Installations: 1,
		Placement:     scalesim.BySize,
		MaxHandedOut:  150,
	})
	require.Equal(t, 150, full.Busiest.HandedOut)
	require.Positive(t, full.Left, "more runs arrive than are handed out")
	require.Greater(t, full.P99, 600, "so waits grow")

	m.AppendsPerSec = 250
	slow := scalesim.Simulate(m, smallDay(), scalesim.Plan{
		Shape:         question,
		Installations: 1,
		Placement:     scalesim.BySize,
		MaxHandedOut:  scalesim.DefaultMaxHandedOut,
	})
	require.LessOrEqual(t, float64(slow.Busiest.Frames), m.FramesPerSec(smallDay()))
	require.Positive(t, slow.Left, "the log appends 175 frames a second, 300 are needed")
}

func TestSimulate_PlacementBySizeIsMoreEvenThanByHash(t *testing.T) {
	t.Parallel()
	peak := func(by scalesim.Placement) int {
		return scalesim.Simulate(measured(t), smallDay(), scalesim.Plan{
			Shape:         question,
			Installations: 8,
			Placement:     by,
			MaxHandedOut:  scalesim.DefaultMaxHandedOut,
		}).Busiest.HandedOut
	}
	require.Less(t, peak(scalesim.BySize), peak(scalesim.ByHash))
}
