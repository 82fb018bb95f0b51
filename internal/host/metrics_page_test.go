package host

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/services/acceptor"
)

const metricsHead = `# Metrics

Generated from what the services register by ` + "`make gen`" + `; do not edit. Every metric, as it is served at ` + "`GET /metrics`" + ` of ` + "`--metrics-addr`" + `, for Prometheus. How they are counted, and what
is never in a label: [operations.md](../operations.md#health-and-metrics). What to do about them: [runbook.md](../runbook.md).

Every process also exports the metrics of the Go runtime (` + "`go_*`" + `) and of the process (` + "`process_*`" + `). A histogram has the series ` + "`_bucket`, `_sum` and `_count`" + `.
In ` + "`waybill dev`" + ` one process serves the metrics of dispatcher, event log and gateway.

| metric | type | labels | of | meaning |
|---|---|---|---|---|
`

// labels are the labels of the metrics, with their descriptions.
var labels = map[string]string{
	"age":                    "days since the end of the run, such as `7-30`",
	"code":                   "an [error code](../errors.md)",
	"result":                 "`hit`, `missing`, `unavailable` or `rejected` for a read, `written`, `too_large`, `dropped` or `failed` for a write",
	"direction":              "`input` or `output`",
	"gen_ai_operation_name":  "`chat`, or `generate_content` for Gemini",
	"gen_ai_provider_name":   "the provider in the [conventions](../tracing.md#generative-ai); the first 50 that a process meets, then `other`",
	"gen_ai_response_model":  "the model that answered; the first 100 that a process meets, then `other`",
	"gen_ai_token_type":      "`input` or `output`",
	"how":                    "`overwritten` by the seal, or `released`: deleted, and overwritten when the server compacts its file",
	"limit":                  "the member of `--provider-settings`: `maxConcurrent`, `requestsPerMinute` or `tokensPerMinute`. Of a gateway: the [rate limit](../rate-limits.md), such as `key` or `tenant-start`",
	"openwop_cap_kind":       "the cap, as `cap.breached` names it",
	"openwop_interrupt_kind": "the kind of the [question](../waiting.md): `approval`, `clarification` and so on",
	"openwop_node_status":    "`completed`, `failed` or `cancelled`",
	"openwop_node_type":      "type id of the node; the first 200 that a process meets, then `other`",
	"openwop_run_status":     "`completed`, `failed` or `cancelled`",
	"openwop_workflow_id":    "id of the workflow; the first 50 that a process meets, then `other`",
	"outcome":                "of an envelope: `accepted`, `invalid`, `gated`, `breached`, or `recalled`, which was decided before. Of [damage](../operations.md#the-data-directory): `repaired`, `kept` or `lost`",
	"tier":                   "`hot`: the run log; `cold`: the cold store",
	"reason":                 "of a refusal: `requests` or `starts`: there are as many as may be at a time; `start_delay`: runs take too long to begin. Of a [waiting run](../fair-shares.md): `capacity`, `concurrency` or `rate`",
	"provider":               "who was asked; the first 50 that a process meets, then `other`",
}

// description is a collector's description of a metric.
var description = regexp.MustCompile(`^Desc\{fqName: "(\w+)", help: "(.*?)"(?:, unit: ".*?")?, constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// typeOf is the type of a collector's metrics.
func typeOf(t *testing.T, c prometheus.Collector, name string) string {
	t.Helper()
	switch c.(type) { // vectors have no series at first
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	}
	reg := prometheus.NewRegistry()
	require.NoError(t, reg.Register(c))
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return strings.ToLower(f.GetType().String())
		}
	}
	require.NotEqual(t, []string{name}, describedBy(c), "a collector of one metric has a value")
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// describedBy returns the names of a collector's metrics.
func describedBy(c prometheus.Collector) (names []string) {
	for _, d := range descriptions(c) {
		names = append(names, description.FindStringSubmatch(d.String())[1])
	}
	return names
}

// descriptions returns the descriptions of a collector's metrics.
func descriptions(c prometheus.Collector) (out []*prometheus.Desc) {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	for d := range descs {
		out = append(out, d)
	}
	return out
}

func metricsPage(t *testing.T) string {
	t.Helper()
	h, _ := startHost(t)
	accepts, err := acceptor.New(acceptor.DefaultConfig(), acceptor.Deps{Log: h.stores.Log, Redactor: h.clients.Redactor})
	require.NoError(t, err)
	var state probe.Serving
	state.Set(probe.ErrStarting)
	var rows []string
	used := map[string]bool{}
	for _, of := range []struct {
		Service    string
		collectors []prometheus.Collector
	}{
		{"dispatcher", h.dispatcher.Collectors()},
		{"eventlog", h.events.Collectors()},
		{"gateway", h.public.gateway.Collectors()},
		{"gateway", h.public.webhooks.Collectors()},
		{"acceptor", accepts.Collectors()},
		{"gateway", []prometheus.Collector{h.brokenAudits()}},
		{"eventlog", []prometheus.Collector{lostRecords(func() uint64 { return 0 })}},
		{"`waybill dev`, acceptor with its own log", []prometheus.Collector{newDamagedRecords(h.nats)}},
		{"`waybill dev`, with a cold store", h.coldCollectors()},
		{"all of `serve`", []prometheus.Collector{state.Gauge()}},
	} {
		for _, c := range of.collectors {
			for _, d := range descriptions(c) {
				m := description.FindStringSubmatch(d.String())
				require.NotNil(t, m)
				var has []string
				for _, label := range strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' }) {
					require.NotEmpty(t, labels[label], "%s: the label %s has no description", m[1], label)
					used[label] = true
					has = append(has, "`"+label+"`")
				}
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n",
					m[1], typeOf(t, c, m[1]), strings.Join(has, ", "), of.Service, inCell(m[2])))
			}
		}
	}
	slices.Sort(rows)
	page := metricsHead + strings.Join(rows, "") + "\n| label | says |\n|---|---|\n"
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		require.True(t, used[label], "no metric has the label %s", label)
		page += fmt.Sprintf("| `%s` | %s |\n", label, labels[label])
	}
	return page
}

// The metrics reference has each metric that a service registers.
func TestGenerated_Metrics(t *testing.T) {
	t.Parallel()
	generated(t, "docs/reference/metrics.md", metricsPage(t))
}

// row is a row of the metrics reference.
var row = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\| .+? \\| (.+) \\|$")

// Every metric, also one without series yet, is named as `promtool check metrics` wants it.
func TestMetrics_AllPassTheLinter(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	require.NoError(t, err)
	var families []*dto.MetricFamily
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		kind, known := dto.MetricType_value[strings.ToUpper(m[2])]
		require.True(t, known, m[0])
		one := &dto.Metric{}
		for _, label := range strings.FieldsFunc(m[3], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
			one.Label = append(one.Label, &dto.LabelPair{Name: new(label), Value: new("x")})
		}
		families = append(families, &dto.MetricFamily{
			Name: new(m[1]), Help: new(m[4]), Type: new(dto.MetricType(kind)), Metric: []*dto.Metric{one},
		})
	}
	require.Len(t, families, strings.Count(string(page), "\n| `")-len(labels), "all rows but those of labels")
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

var update = flag.Bool("update", false, "write the generated files")

// generated compares a generated file with the one in the tree, or writes it.
func generated(t *testing.T, name, want string) {
	t.Helper()
	path := "../../" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run make gen")
}

// inCell escapes a text for a table cell.
func inCell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
