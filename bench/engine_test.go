package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestOnlyEngine_MeasuresEveryRow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	out := filepath.Join(t.TempDir(), "report.md")
	require.NoError(t, run(t.Context(), options{
		bin: harness.Binary(t), dir: t.TempDir(), out: out, seconds: 150 * time.Millisecond, quick: true, only: sectionEngine,
	}))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	doc := string(b)
	for _, row := range []string{
		"from 0, the slowest of 3 | absolute | ≤ 100 ms |",
		"a branch of a run of ",
		"events, at its start, p99 | absolute | ≤ 5 ms |",
		"events, anywhere, p99 | absolute | ≤ 5 ms |",
		"from an answer to the next question of a run of ",
		"events, p50 | absolute | ≤ 5 ms over the shortest |",
		"100 branches, each a model that takes 200 ms, relative to one branch, p50 | ratio | ≤ 2× |",
		"heap per run, of 50 runs that wait for a person | absolute | ≤ 50 KB |",
		"… CPU of all of them per second | absolute |",
	} {
		require.Contains(t, doc, row)
	}
	for _, broken := range []string{"NaN", "Inf", "%!", "a run of 1 events"} {
		require.NotContains(t, doc, broken, "a figure without measurements:\n%s", doc)
	}
}

func TestEngineFigures_CompareWithTheTargets(t *testing.T) {
	t.Parallel()
	f := engineFigures{
		forks: []forkRow{{mode: "replay", took: samples{forkTarget}}, {mode: "branch", took: samples{1, forkTarget + 1}}},
		pages: []pageRow{{took: samples{pageTarget}}, {took: samples{pageTarget + 1}}, {took: samples{1}}},
		wakes: []wakeRow{{took: samples{1}}, {took: samples{wakeTarget + 1}}, {took: samples{wakeTarget + 2}}},
		wide:  []wideRow{{one: samples{100}, all: samples{200}}, {one: samples{100}, all: samples{201}}},
		wait:  waitRow{runs: 1024, alive: 1024, held: 1024 + 50*1024, busy: 2 * time.Millisecond},
	}
	var met []bool
	for _, g := range f.figures() {
		met = append(met, g.met)
	}
	require.Equal(t, []bool{true, false, true, false, true, false, false, true, false, true, false, true, false}, met, "forks, pages and their ratio, wakes, wide runs, memory, CPU")
}
