package tracing_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/obs/telemetry"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/double/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func exporter(t *testing.T, endpoint, protocol string, ratio float64) *tracing.Exporter {
	t.Helper()
	return open(t, telemetry.Flags{Endpoint: endpoint, Protocol: protocol, Ratio: &ratio}).Spans
}

func open(t *testing.T, f telemetry.Flags, environ ...string) *telemetry.Telemetry {
	t.Helper()
	s, err := telemetry.Read(f, environ)
	require.NoError(t, err)
	x, err := telemetry.Open(t.Context(), s, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close(context.Background())) })
	return x
}

func flush(t *testing.T, x *tracing.Exporter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, x.Close(ctx))
}

func TestExporter_SendsSpansWithTheirIDs(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{telemetry.HTTPProtobuf, telemetry.HTTPJSON} {
		c := otlp.New()
		t.Cleanup(c.Close)
		x := exporter(t, c.URL()+"/", protocol, 1)
		start := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
		trace, _ := runspan.TraceOf("r", "")
		x.Ended([]*runspan.Span{
			{
				Name:    "openwop.run",
				Trace:   trace,
				ID:      runspan.RunSpan("r"),
				Kind:    runspan.KindInternal,
				Code:    runspan.Error,
				Message: "run_timeout",
				Start:   start,
				End:     start.Add(time.Second),
				Attributes: map[string]any{
					"s":       "x",
					"i":       int64(7),
					"f":       0.5,
					"b":       true,
					"list":    []string{"a"},
					"unknown": struct{}{},
				},
				Events: []runspan.Moment{{Name: "cap.breached", At: start, Attributes: map[string]any{"i": int64(1)}}},
			},
			{
				Name:   "child",
				Trace:  trace,
				ID:     runspan.NodeSpan("r", "n"),
				Parent: runspan.RunSpan("r"),
				Start:  start.Add(time.Second),
				End:    start,
			},
		})
		flush(t, x)
		require.Empty(t, c.Refused())
		spans := c.Spans()
		require.Len(t, spans, 2, protocol)
		require.Equal(t, trace.String(), spans[0].TraceID)
		require.Equal(t, runspan.RunSpan("r").String(), spans[0].SpanID)
		require.Empty(t, spans[0].ParentID)
		require.Equal(t, 2, spans[0].Code)
		require.Equal(t, "run_timeout", spans[0].Message)
		require.Equal(t, uint64(start.UnixNano()), spans[0].Start) //nolint:gosec // G115: long after 1970
		require.Equal(t, map[string]any{
			"s":    "x",
			"i":    int64(7),
			"f":    0.5,
			"b":    true,
			"list": []string{"a"},
		}, spans[0].Attributes)
		require.Equal(t, []string{"cap.breached"}, spans[0].Events)
		require.Equal(t, runspan.RunSpan("r").String(), spans[1].ParentID)
		require.Equal(t, spans[1].Start, spans[1].End, "clocks may disagree; a span never ends before it began")
		require.Equal(t, "test", spans[1].Service)
	}
}

// Invalid UTF-8 in one span must not drop the other spans of its batch.
func TestExporter_ReplacesInvalidUTF8(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{telemetry.HTTPProtobuf, telemetry.HTTPJSON} {
		c := otlp.New()
		t.Cleanup(c.Close)
		x := exporter(t, c.URL(), protocol, 1)
		trace, _ := runspan.TraceOf("r", "")
		broken := "a\xc3"
		x.Ended([]*runspan.Span{
			{
				Name:       broken,
				Trace:      trace,
				ID:         runspan.RunSpan("r"),
				Start:      time.Now(),
				End:        time.Now(),
				Code:       runspan.Error,
				Message:    broken,
				Attributes: map[string]any{"s": broken, "l": []string{broken}},
			},
			{Name: "other", Trace: trace, ID: runspan.RunSpan("q"), Start: time.Now(), End: time.Now()},
		})
		flush(t, x)
		require.Len(t, c.Spans(), 2, protocol)
	}
}

func TestWants_FollowsTheRequestElseTheRatio(t *testing.T) {
	t.Parallel()
	c := otlp.New()
	t.Cleanup(c.Close)
	all, none := exporter(t, c.URL(), telemetry.HTTPProtobuf, 1), exporter(t, c.URL(), telemetry.HTTPProtobuf, 0)
	t.Cleanup(func() { flush(t, all); flush(t, none) })
	rec := &wire.RunRecord{RunID: "r"}
	require.True(t, all.Wants(rec))
	require.False(t, none.Wants(rec))
	rec.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	require.True(t, none.Wants(rec))
	rec.Traceparent = strings.TrimSuffix(rec.Traceparent, "1") + "0"
	require.False(t, all.Wants(rec))

	x := exporter(t, c.URL(), telemetry.HTTPProtobuf, 0)
	x.Accepted(&runspan.Span{
		Name:   "a",
		Trace:  runspan.TraceID{1},
		Parent: runspan.SpanID{1},
		Start:  time.Now(),
		End:    time.Now(),
	}, false)
	flush(t, x)
	require.Empty(t, c.Spans(), "an accept of a trace that is not sampled")
}
