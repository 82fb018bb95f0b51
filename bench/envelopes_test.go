package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

func TestOnlyEnvelopes_MeasuresEveryRow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	out := filepath.Join(t.TempDir(), "report.md")
	require.NoError(t, run(t.Context(), options{
		bin: harness.Binary(t), dir: t.TempDir(), out: out, seconds: 150 * time.Millisecond, quick: true, only: sectionEnvelopes,
	}))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	doc := string(b)
	for _, row := range []string{
		"CPU of one accept of 2 KB, p50 | absolute | ≤ 200 µs",
		"allocations per accept | count | ≤ 1,200",
		"envelopes accepted and on disk, 64 writers | absolute | ≥ 2,000/s",
		"… of the log's own rate | ratio |",
		"one accept at 200/s, from its due time, p50 | absolute |",
		"… p99 | absolute | ≤ fsync p99 + 10 ms",
		"redacting prose, known secrets, 1,000 secrets, one core | absolute | ≥ 100 MB/s",
		"redacting JSON, known and likely secrets, 1,000 secrets, one core | absolute | ≥ 100 MB/s",
		"… relative to a search for one secret | ratio |",
		"| absolute | ≤ 250 ms",
		"a hostile schema, registered, applied or projected, the worst of all | absolute | ≤ 50 ms and ≤ 16 MB",
	} {
		require.Contains(t, doc, row)
	}
	for _, h := range hostiles() {
		require.Contains(t, doc, "| "+h.name+" | ")
	}
	for _, broken := range []string{"NaN", "Inf", "%!", " 0/s", " 0.0 µs", " 0 MB/s", " 0.00×"} {
		require.NotContains(t, doc, broken, "a figure without measurements:\n%s", doc)
	}
	require.NotContains(t, doc, "\n## Create to completed", "only the requested section")
}
