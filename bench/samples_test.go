package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// upTo are 1 ms to n ms, the slowest first.
func upTo(n int) samples {
	s := make(samples, n)
	for i := range s {
		s[i] = time.Duration(n-i) * time.Millisecond
	}
	return s
}

func TestPercentile_IsTheNearestRank(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		n       int
		percent float64
		want    time.Duration
	}{
		{0, 50, 0},
		{1, 0, time.Millisecond},
		{1, 50, time.Millisecond},
		{1, 99, time.Millisecond},
		{2, 50, time.Millisecond},
		{3, 50, 2 * time.Millisecond},
		{100, 50, 50 * time.Millisecond},
		{100, 99, 99 * time.Millisecond},
		{100, 99.9, 100 * time.Millisecond},
		{100, 100, 100 * time.Millisecond},
		{1000, 99, 990 * time.Millisecond},
	} {
		require.Equal(t, tc.want, upTo(tc.n).sorted().percentile(tc.percent), "p%v of %d", tc.percent, tc.n)
	}
}

func TestPercentile_IsNotMovedByOneSlowSample(t *testing.T) {
	t.Parallel()
	s := append(upTo(999), time.Hour).sorted()
	require.Equal(t, 500*time.Millisecond, s.percentile(50))
	require.Equal(t, 990*time.Millisecond, s.percentile(99))
	require.Equal(t, time.Hour, s.percentile(100))
}

func TestSpread_CountsEachSampleOnce(t *testing.T) {
	t.Parallel()
	s := samples{
		3 * time.Microsecond, 10 * time.Microsecond, 11 * time.Microsecond, // a bound belongs to its bucket
		150 * time.Microsecond, 150 * time.Microsecond, 20 * time.Second,
	}.sorted()
	buckets := s.spread()
	require.Equal(t, bucket{10 * time.Microsecond, 2}, buckets[0])
	require.Equal(t, bucket{20 * time.Microsecond, 1}, buckets[1])
	require.Equal(t, bucket{0, 1}, buckets[len(buckets)-1], "slower than all bounds")
	sum := 0
	for _, b := range buckets {
		sum += b.count
	}
	require.Equal(t, len(s), sum)
}

func TestSpread_LeavesEmptyEndsOut(t *testing.T) {
	t.Parallel()
	require.Empty(t, samples{}.spread())
	require.Equal(t, []bucket{{200 * time.Microsecond, 1}, {500 * time.Microsecond, 0}, {time.Millisecond, 1}},
		samples{150 * time.Microsecond, 900 * time.Microsecond}.spread())
}

func TestShort_KeepsThreeDigits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		53_219 * time.Nanosecond: "53.2 µs", 136_400 * time.Nanosecond: "136 µs", 4_250 * time.Microsecond: "4.25 ms",
	} {
		require.Equal(t, want, short(d))
	}
}

func TestFigureTable_ShowsEachFigureAndWhetherItsGoalIsMet(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	figureTable(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }, []figure{
		{
			what:     "speed",
			basis:    absolute,
			measured: "3/s",
			target:   "≥ 2/s",
			met:      true,
			ceiling:  "9/s",
		},
		{what: "share", basis: ratio, measured: "33 %", ceiling: "100 %"},
		{what: "objects", basis: count, measured: "5", target: "≤ 4"},
	})
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")[2:]
	require.Equal(t, []string{
		"| speed | absolute | ≥ 2/s | 3/s | yes | 9/s |",
		"| share | ratio | – | 33 % | – | 100 % |",
		"| objects | count | ≤ 4 | 5 | **no** | – |",
	}, rows)
}

func TestSpreadTable_EndsAtAll(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	spreadTable(func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }, samples{time.Millisecond, time.Minute})
	require.Contains(t, b.String(), "| 1ms | 1 | 50.00 % |\n")
	require.True(t, strings.HasSuffix(b.String(), "| more | 1 | 100.00 % |\n"), b.String())
}

func TestReport_HasTheRequestedSections(t *testing.T) {
	t.Parallel()
	one := samples{time.Millisecond}
	measured := envelopeFigures{
		accept: accepts{cpu: one, wall: one, floor: one},
		paced:  pacedAccepts{latency: one, alone: one, fsync: one, late: one},
	}
	for only, want := range map[section][2]bool{sectionAll: {true, true}, sectionRuns: {true, false}, sectionEnvelopes: {false, true}} {
		doc := (&report{options: options{only: only}, envelopes: measured}).render()
		require.Equal(t, want[0], strings.Contains(doc, "\n## Create to completed"), "%q", only)
		require.Equal(t, want[1], strings.Contains(doc, "\n## Envelopes\n"), "%q", only)
		require.Contains(t, doc, bases)
	}
}

func TestOptions_NameTheSections(t *testing.T) {
	t.Parallel()
	require.NoError(t, options{}.validate())
	require.NoError(t, options{only: "envelopes"}.validate())
	for _, s := range parts {
		require.NoError(t, options{only: s}.validate())
	}
	require.ErrorContains(t, options{only: "envelops"}.validate(), `-only "envelops": want one of ["runs" "envelopes" "models" "engine" "timers" "cluster" "overload" "cost" "pickup" "callers" "scale" "sealing"]`)
}

func TestHostileRow_HoldsRefusalsToTheSameBounds(t *testing.T) {
	t.Parallel()
	small, slow, large := cost{cpu: time.Millisecond}, cost{cpu: hostileTime + 1}, cost{bytes: hostileBytes + 1}
	for name, tc := range map[string]struct {
		row  hostileRow
		want bool
	}{
		"taken":               {hostileRow{register: small, validate: small}, true},
		"slow to register":    {hostileRow{register: slow}, false},
		"large to register":   {hostileRow{register: large}, false},
		"slow to apply":       {hostileRow{register: small, validate: slow}, false},
		"refused":             {hostileRow{register: small, refused: true}, true},
		"refused, but slowly": {hostileRow{register: slow, refused: true}, false},
	} {
		require.Equal(t, tc.want, tc.row.met(), name)
	}
}
