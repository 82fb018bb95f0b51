package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/test/harness"
)

// contentSinks are the sinks that show the content of runs.
var contentSinks = []string{
	"REST", "poll", "SSE", "chunks", "thoughts", "gRPC", "gRPC stream", "NATS", "NATS store WAYBILL_RUNS", "rows of frames", "log",
	"vendor", "anthropic", "gemini", "MCP server", "A2A agent",
	"NATS headers", "webhook", "interrupt", "diff", "annotations", "audit", "NATS store WAYBILL_AUDIT",
}

// TestSweep_FindsSimulatedLeaks is the control of the sweep. A host without the registered
// secrets leaks them, and the same search over the same sinks must find each secret in each
// encoding. Otherwise an empty result would prove nothing.
func TestSweep_FindsSimulatedLeaks(t *testing.T) {
	t.Parallel()
	batches := knownBatches(makeSecrets())
	r := start(t, nil, batches, "--redact-shapes=false")
	r.blind = true
	r.deploy()
	for i, b := range batches {
		r.requests(b)
		r.talks(b)
		r.relays(b)
		r.composes(b, i)
		r.reasons(b)
		runID := r.waits(b)
		r.differ(runID, r.runs[0])
		r.plantOutsideLog(b, runID)
	}
	r.end(batches, func(h *harness.Host) { h.Stop() }, "")
	f, names := finderOf(t, batches)
	found := map[string]map[int]bool{}
	for where, content := range r.all {
		where, _, _ = strings.Cut(where, ": ") // all files together: "disk"
		if found[where] == nil {
			found[where] = map[int]bool{}
		}
		for _, h := range f.find(content.Bytes()) {
			found[where][h.text] = true
		}
	}
	for _, where := range append([]string{"disk"}, contentSinks...) {
		for i, name := range names {
			if !found[where][i] {
				t.Errorf("%s was not found in %s", name, where)
			}
		}
	}
	// Spans have the tags; a busy host drops some spans.
	for i, b := range batches {
		n := 0
		for k := range b.items {
			if found["OTLP"][i*len(b.items)+k] {
				n++
			}
		}
		require.Positive(t, n, "%s: nothing was found in spans", b.name)
	}
}

// spanOf returns a span with the text in every field.
func spanOf(text string) *collectorpb.ExportTraceServiceRequest {
	attribute := &commonpb.KeyValue{Key: "a", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}}
	return &collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{
		Spans: []*tracepb.Span{{Name: "n", Attributes: []*commonpb.KeyValue{attribute}}},
	}}}}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func logged(text string, handler func(*bytes.Buffer) slog.Handler) []byte {
	var out bytes.Buffer
	slog.New(handler(&out)).Error("handler failed", "error", fmt.Errorf("outer: %w", errors.New(strconv.Quote(text))))
	return out.Bytes()
}

// writers format a text as the sinks without content would.
var writers = map[string]func(text string) []byte{
	"log as text": func(text string) []byte {
		return logged(text, func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) })
	},
	"log as JSON": func(text string) []byte {
		return logged(text, func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) })
	},
	"spans as Protobuf": func(text string) []byte { return must(proto.Marshal(spanOf(text))) },
	"spans as JSON":     func(text string) []byte { return must(protojson.Marshal(spanOf(text))) },
	"metrics": func(text string) []byte {
		reg := prometheus.NewRegistry()
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "c", Help: "h"}, []string{"l"})
		reg.MustRegister(c)
		c.WithLabelValues(text).Inc()
		w := httptest.NewRecorder()
		promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil)) //nolint:noctx // a recorder
		return w.Body.Bytes()
	},
	"bundle": func(text string) []byte {
		return []byte(mustJSON(map[string]any{"events": []any{map[string]any{"payload": map[string]any{text: text}}}}))
	},
	"bundle in a bundle": func(text string) []byte {
		return []byte(mustJSON(map[string]string{"bundle": mustJSON(map[string]string{"a": text})}))
	},
	"error of REST": func(text string) []byte {
		return []byte(mustJSON(map[string]string{"error": "validation_error", "message": text}))
	},
	"error of gRPC": func(text string) []byte {
		s := &sinks{all: map[string]*bytes.Buffer{}}
		s.failure("gRPC", status.Error(codes.InvalidArgument, text))
		return s.all["gRPC errors"].Bytes()
	},
	"place in an error": func(text string) []byte {
		return must(json.Marshal(map[string]string{"instancePath": "/payload/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(text)}))
	},
	"panic of the runtime": func(text string) []byte { return fmt.Appendf(nil, "panic: %s\n\ngoroutine 1 [running]:\n", text) },
}

// For sinks that show no content even when secrets are unregistered, the search is tested with that
// sink's writer.
func TestFinder_FindsEveryWrittenFormOfASecret(t *testing.T) {
	t.Parallel()
	batches := knownBatches(append(own(), makeSecrets()...))
	f, names := finderOf(t, batches)
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := 0
			for _, b := range batches {
				found := map[int]bool{}
				for _, h := range f.find(write(b.at("control"))) {
					found[h.text] = true
				}
				for range b.items {
					require.True(t, found[at], "%s was not found", names[at])
					at++
				}
			}
		})
	}
}

// Markers alone are not findings.
func TestFinder_FindsNothingInMarkers(t *testing.T) {
	t.Parallel()
	batches := knownBatches(append(own(), makeSecrets()...))
	f, _ := finderOf(t, batches)
	for _, b := range batches {
		clean := b
		clean.items = nil
		for _, it := range b.items {
			clean.items = append(clean.items, item{it.marker, it.marker, ""})
		}
		require.Empty(t, f.find([]byte(clean.at("control"))))
		require.Empty(t, clean.missing("control", clean.at("control")))
		require.NotEmpty(t, b.missing("control", b.at("control")), "the marker is missing")
	}
}
