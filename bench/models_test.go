package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/harness"
)

func TestOnlyModels_MeasuresEveryRow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	out := filepath.Join(t.TempDir(), "report.md")
	require.NoError(t, run(t.Context(), options{
		bin: harness.Binary(t), dir: t.TempDir(), out: out, seconds: time.Second, quick: true, only: sectionModels,
	}))
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	doc := string(b)
	for _, row := range []string{
		"overhead of a call within a run, `sync`, 20/s, the double takes 20ms, p50 | absolute | ≤ 1 ms",
		"overhead of a single call, `sync`, 20/s, the double takes 0s, p50 | absolute | ≤ 1 ms",
		"overhead of a single call, `process`, 20/s, the double takes 20ms, p50 | absolute | ≤ 1 ms",
		"… p99 | absolute | ≤ 5 ms",
		"… p50 relative to the baseline's | ratio |",
		"… succeeded | ratio | 100 % | 100.00 % | yes | baseline 100.00 %",
		"| ≤ 200 MB |",
		"… CPU per call | absolute |",
		"first piece of a streamed answer, `sync`, 10/s, the double takes 20ms and 10ms a piece, p50 | absolute |",
		"highest rate at which 99 % of calls succeed, `process`, the double takes 20ms | absolute | – | 20/s",
		"| `process`, 20/s, the double takes 20ms | host | 18 of 18 |",
		"| `process`, 20/s, the double takes 20ms | baseline | 18 of 18 |",
	} {
		require.Contains(t, doc, row)
	}
	for _, broken := range []string{"NaN", "Inf", "%!", " 0.0×", "overloaded"} {
		require.NotContains(t, doc, broken, "a figure without measurements:\n%s", doc)
	}
	require.NotContains(t, doc, "\n## Envelopes", "only the requested section")
}

func TestCallFigures_ExcludeTheTimeOfTheDouble(t *testing.T) {
	t.Parallel()
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	var f callFigures
	f.take(trip{sent: at(0), asked: at(3), first: at(38), answered: at(42)}, openaicompat.Watched{
		Arrived: at(5), Writes: []time.Time{at(10), at(12), at(30), at(35)},
	})
	require.Equal(t, callFigures{
		succeeded: 1, before: samples{2e6}, after: samples{7e6}, over: samples{9e6}, whole: samples{12e6}, first: samples{26e6},
	}, f)
}

func TestModelRow_DistinguishesAnOverloadedHostFromAnOverloadedMachine(t *testing.T) {
	t.Parallel()
	row := modelRow{host: callFigures{made: 10, succeeded: 3, failure: errors.New("too late")}, base: callFigures{made: 10, succeeded: 5}}
	for _, figures := range [][]figure{row.figures(), row.streamFigures()} {
		require.Len(t, figures, 1, "no percentiles of a growing queue")
		require.Equal(t, "overloaded: 30.0 % of 10 succeed; for example: too late", figures[0].measured)
		require.Equal(t, "baseline: 50.0 % of 10 succeed", figures[0].ceiling)
		require.False(t, figures[0].met)
	}
	none := mostRow{broke: 100}.figure()
	require.Equal(t, "below 100/s", none.measured)
}

func TestPaced_CountsFailuresAndReportsOne(t *testing.T) {
	t.Parallel()
	c := modelCaller{double: newModelDouble(), patience: time.Second}
	t.Cleanup(c.double.Close)
	broken := errors.New("broken")
	f, err := c.paced(t.Context(), func(context.Context, string) (trip, error) { return trip{}, broken }, 1000, 5, answers{})
	require.NoError(t, err)
	require.Equal(t, 5, f.made)
	require.Zero(t, f.succeeded)
	require.ErrorIs(t, f.failure, broken)
	require.Len(t, f.late, 5)
	left := 0
	c.double.waiting.Range(func(_, _ any) bool { left++; return true })
	require.Zero(t, left, "a failed call must not be awaited")
}

func TestDirect_CallsTheDoubleAsTheHostDoes(t *testing.T) {
	t.Parallel()
	c := modelCaller{double: newModelDouble(), patience: 10 * time.Second}
	t.Cleanup(c.double.Close)
	ask, done, err := direct(c.double.URL(), []byte(`{"type":"object","additionalProperties":false,"required":[],"properties":{}}`))
	require.NoError(t, err)
	t.Cleanup(done)
	f, err := c.paced(t.Context(), ask, 100, 3, answers{pieces: 4})
	require.NoError(t, err)
	require.NoError(t, f.failure)
	require.Equal(t, 3, f.succeeded)
	for _, s := range []samples{f.before, f.after, f.over, f.first} {
		require.Len(t, s, 3)
		require.Positive(t, s[0], "the double received the call between its start and its end")
	}
}

func TestModelDouble_AnswersToTheSchemaExceptForAProbe(t *testing.T) {
	t.Parallel()
	d := newModelDouble()
	t.Cleanup(d.Close)
	s, err := schema.Compile(accepttest.Kind, []byte(accepttest.Schema))
	require.NoError(t, err)
	said := func(question string) string {
		all := ""
		for _, piece := range d.answer(openaicompat.Recorded{Body: []byte(question)}).Pieces {
			all += piece
		}
		return all
	}
	d.answersLike(answers{pieces: 7})
	require.Len(t, d.answer(openaicompat.Recorded{}).Pieces, 7)
	require.Empty(t, s.Validate([]byte(said("call-000000001"))))
	require.NotEmpty(t, s.Validate([]byte(said(probeWrong))))
	require.Empty(t, s.Validate([]byte(said(probeLeak))))
	require.Contains(t, said(probeLeak), doubleKey)
}
