// Package otlp is an OpenTelemetry collector for tests. It receives spans over OTLP/HTTP, as
// Protobuf and as JSON, and stores the spans and the raw bytes.
package otlp

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
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

	mu    sync.Mutex // guards the fields below
	spans []Span
	bytes []byte
	types map[string]int
	bad   []string
}

// New starts a collector.
func New() *Collector {
	c := &Collector{types: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.take)
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
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes = append(append(c.bytes, body...), '\n')
	kind := r.Header.Get("Content-Type")
	c.types[kind]++
	var spans []Span
	switch kind {
	case "application/x-protobuf":
		spans, err = fromProto(body)
	case "application/json":
		spans, err = fromJSON(body)
	default:
		http.Error(w, "unsupported media type", http.StatusUnsupportedMediaType)
		c.bad = append(c.bad, "content type "+kind)
		return
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

func fromProto(body []byte) ([]Span, error) {
	var req collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	var out []Span
	for _, rs := range req.GetResourceSpans() {
		service, _ := attributes(rs.GetResource().GetAttributes())["service.name"].(string)
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
	return out, nil
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
		}
	}
	return out
}
