package telemetry

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// producer reads a Prometheus registry, so that both ways of export have the same metrics. The
// metrics of the GenAI semantic conventions get their names and units of OpenTelemetry.
type producer struct{ sdkmetric.Producer }

func newProducer(from prometheus.Gatherer) sdkmetric.Producer {
	return producer{bridge.NewMetricProducer(bridge.WithGatherer(from))}
}

// conventional are the names and units of metrics, by their names for Prometheus.
var conventional = map[string]struct{ name, unit string }{
	"gen_ai_client_token_usage":                {"gen_ai.client.token.usage", "{token}"},
	"gen_ai_client_operation_duration_seconds": {"gen_ai.client.operation.duration", "s"},
}

// labels are the attributes of those metrics, by their labels for Prometheus.
var labels = map[attribute.Key]attribute.Key{ //nolint:gosec // G101: names of labels
	"gen_ai_operation_name": "gen_ai.operation.name",
	"gen_ai_provider_name":  "gen_ai.provider.name",
	"gen_ai_response_model": "gen_ai.response.model",
	"gen_ai_token_type":     "gen_ai.token.type",
}

// Produce implements metric.Producer.
func (p producer) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := p.Producer.Produce(ctx)
	for _, s := range scopes {
		for i := range s.Metrics {
			rename(&s.Metrics[i])
		}
	}
	return scopes, err
}

func rename(m *metricdata.Metrics) {
	c, ok := conventional[m.Name]
	if !ok {
		if m.Unit == "" && strings.HasSuffix(m.Name, "_seconds") {
			m.Unit = "s"
		}
		return
	}
	m.Name, m.Unit = c.name, c.unit
	if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
		for i := range h.DataPoints {
			h.DataPoints[i].Attributes = renameLabels(h.DataPoints[i].Attributes)
		}
	}
}

func renameLabels(from attribute.Set) attribute.Set {
	out := make([]attribute.KeyValue, 0, from.Len())
	for _, kv := range from.ToSlice() {
		if name, ok := labels[kv.Key]; ok {
			kv.Key = name
		}
		out = append(out, kv)
	}
	return attribute.NewSet(out...)
}
