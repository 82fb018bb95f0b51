// Package otlp is an OpenTelemetry collector for tests. It receives spans, metrics and log records
// over OTLP/HTTP, as Protobuf and as JSON, and stores them and the raw bytes.
package otlp

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Span is a received span; ids are in hex.
type Span struct {
	Name, TraceID, SpanID, ParentID string
	Service                         string
	// Code is 0 unset, 1 ok, 2 error.
	Code       int
	Message    string
	Start, End uint64
	Attributes map[string]any
	Events     []string
}

// Collector is a running collector.
type Collector struct {
	server *httptest.Server

	mu      sync.Mutex // guards the fields below
	spans   []Span
	metrics map[string]string
	logs    []string
	sources []map[string]any
	headers http.Header
	bytes   []byte
	types   map[string]int
	bad     []string
}

// New starts a collector.
func New() *Collector {
	c := &Collector{types: map[string]int{}, metrics: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.take)
	mux.HandleFunc("POST /v1/metrics", c.take)
	mux.HandleFunc("POST /v1/logs", c.take)
	c.server = httptest.NewServer(mux)
	return c
}

// URL is the endpoint to configure.
func (c *Collector) URL() string { return c.server.URL }

// Close stops it.
func (c *Collector) Close() { c.server.Close() }

// Spans returns all spans so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Metrics returns the units of all metrics so far, by name.
func (c *Collector) Metrics() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.metrics)
}

// Logs returns the bodies of all log records so far.
func (c *Collector) Logs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.logs)
}

// Resources returns the attributes of the process in each request so far, except in spans in JSON.
func (c *Collector) Resources() []map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sources)
}

// Headers returns the headers of the last request.
func (c *Collector) Headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Clone()
}

// Bytes returns all request bodies so far, concatenated.
func (c *Collector) Bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]byte(nil), c.bytes...)
}

// Refused lists the requests that could not be parsed. A correct sender causes none.
func (c *Collector) Refused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.bad...)
}

// ContentTypes counts requests by their content type.
func (c *Collector) ContentTypes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for k, v := range c.types {
		out[k] = v
	}
	return out
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes = append(append(c.bytes, body...), '\n')
	c.headers = r.Header
	kind := r.Header.Get("Content-Type")
	c.types[kind]++
	var spans []Span
	switch signal := strings.TrimPrefix(r.URL.Path, "/v1/"); {
	case kind != "application/x-protobuf" && kind != "application/json":
		http.Error(w, "unsupported media type", http.StatusUnsupportedMediaType)
		c.bad = append(c.bad, "content type "+kind)
		return
	case signal != "traces":
		err = c.keep(signal, kind, body)
	case kind == "application/json":
		spans, err = fromJSON(body)
	default:
		var source map[string]any
		spans, source, err = fromProto(body)
		c.sources = append(c.sources, source)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		c.bad = append(c.bad, err.Error())
		return
	}
	c.spans = append(c.spans, spans...)
	w.Header().Set("Content-Type", kind)
	if kind == "application/json" {
		_, _ = io.WriteString(w, "{}")
	}
}

func readBody(r *http.Request) ([]byte, error) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		in = z
	}
	return io.ReadAll(in)
}

// keep stores metrics or log records.
func (c *Collector) keep(signal, kind string, body []byte) error {
	var (
		metrics metricspb.ExportMetricsServiceRequest
		logs    logspb.ExportLogsServiceRequest
		msg     proto.Message = &metrics
	)
	if signal == "logs" {
		msg = &logs
	}
	read := proto.Unmarshal
	if kind == "application/json" {
		read = unmarshalJSON
	}
	if err := read(body, msg); err != nil {
		return err
	}
	for _, rm := range metrics.GetResourceMetrics() {
		c.sources = append(c.sources, attributes(rm.GetResource().GetAttributes()))
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				c.metrics[m.GetName()] = m.GetUnit()
			}
		}
	}
	for _, rl := range logs.GetResourceLogs() {
		c.sources = append(c.sources, attributes(rl.GetResource().GetAttributes()))
		for _, sl := range rl.GetScopeLogs() {
			for _, l := range sl.GetLogRecords() {
				c.logs = append(c.logs, l.GetBody().GetStringValue())
			}
		}
	}
	return nil
}

// unmarshalJSON reads JSON. Ids in hex are read as bytes of twice the length, which no test looks at.
func unmarshalJSON(body []byte, msg proto.Message) error { return protojson.Unmarshal(body, msg) }

func fromProto(body []byte) (out []Span, source map[string]any, _ error) {
	var req collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		return nil, nil, err
	}
	for _, rs := range req.GetResourceSpans() {
		source = attributes(rs.GetResource().GetAttributes())
		service, _ := source["service.name"].(string)
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				span := Span{
					Name: s.GetName(), TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()),
					ParentID: hex.EncodeToString(s.GetParentSpanId()), Service: service, Code: int(s.GetStatus().GetCode()),
					Message: s.GetStatus().GetMessage(), Start: s.GetStartTimeUnixNano(), End: s.GetEndTimeUnixNano(), Attributes: attributes(s.GetAttributes()),
				}
				for _, e := range s.GetEvents() {
					span.Events = append(span.Events, e.GetName())
				}
				out = append(out, span)
			}
		}
	}
	return out, source, nil
}

func attributes(list []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[kv.GetKey()] = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			out[kv.GetKey()] = v.DoubleValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.GetKey()] = v.BoolValue
		case *commonpb.AnyValue_ArrayValue:
			var texts []string
			for _, x := range v.ArrayValue.GetValues() {
				texts = append(texts, x.GetStringValue())
			}
			out[kv.GetKey()] = texts
		}
	}
	return out
}

// jsonRequest is a request in the OTLP specification's JSON form: ids in hex, 64-bit integers as
// strings, enums as numbers.
type jsonRequest struct {
	ResourceSpans []struct {
		Resource struct {
			Attributes []jsonAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans []struct {
			Spans []struct {
				TraceID           string          `json:"traceId"`
				SpanID            string          `json:"spanId"`
				ParentSpanID      string          `json:"parentSpanId"`
				Name              string          `json:"name"`
				Kind              int             `json:"kind"`
				StartTimeUnixNano uint64          `json:"startTimeUnixNano,string"`
				EndTimeUnixNano   uint64          `json:"endTimeUnixNano,string"`
				Attributes        []jsonAttribute `json:"attributes"`
				Events            []struct {
					Name string `json:"name"`
				} `json:"events"`
				Status struct {
					Code    int    `json:"code"`
					Message string `json:"message"`
				} `json:"status"`
			} `json:"spans"`
		} `json:"scopeSpans"`
	} `json:"resourceSpans"`
}

type jsonAttribute struct {
	Key   string `json:"key"`
	Value struct {
		StringValue *string  `json:"stringValue"`
		IntValue    *int64   `json:"intValue,string"`
		DoubleValue *float64 `json:"doubleValue"`
		BoolValue   *bool    `json:"boolValue"`
		ArrayValue  *struct {
			Values []struct {
				StringValue string `json:"stringValue"`
			} `json:"values"`
		} `json:"arrayValue"`
	} `json:"value"`
}

func fromJSON(body []byte) ([]Span, error) {
	var req jsonRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	var out []Span
	for _, rs := range req.ResourceSpans {
		service, _ := jsonAttributes(rs.Resource.Attributes)["service.name"].(string)
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				for _, id := range []string{s.TraceID, s.SpanID, s.ParentSpanID} {
					if _, err := hex.DecodeString(id); err != nil {
						return nil, err
					}
				}
				span := Span{
					Name: s.Name, TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentSpanID, Service: service, Code: s.Status.Code,
					Message: s.Status.Message, Start: s.StartTimeUnixNano, End: s.EndTimeUnixNano, Attributes: jsonAttributes(s.Attributes),
				}
				for _, e := range s.Events {
					span.Events = append(span.Events, e.Name)
				}
				out = append(out, span)
			}
		}
	}
	return out, nil
}

func jsonAttributes(list []jsonAttribute) map[string]any {
	out := map[string]any{}
	for _, a := range list {
		switch v := a.Value; {
		case v.StringValue != nil:
			out[a.Key] = *v.StringValue
		case v.IntValue != nil:
			out[a.Key] = *v.IntValue
		case v.DoubleValue != nil:
			out[a.Key] = *v.DoubleValue
		case v.BoolValue != nil:
			out[a.Key] = *v.BoolValue
		case v.ArrayValue != nil:
			var texts []string
			for _, x := range v.ArrayValue.Values {
				texts = append(texts, x.StringValue)
			}
			out[a.Key] = texts
		}
	}
	return out
}
