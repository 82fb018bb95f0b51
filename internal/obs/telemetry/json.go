package telemetry

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// jsonTransport sends the requests of an exporter as JSON: of those of the SDK only that for spans can.
type jsonTransport struct {
	http.RoundTripper

	signal signal
}

// RoundTrip sends a request.
func (t jsonTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	compressed := r.Header.Get("Content-Encoding") == "gzip"
	if compressed {
		if body, err = gunzip(body); err != nil {
			return nil, err
		}
	}
	msg := t.signal.request()
	if err := proto.Unmarshal(body, msg); err != nil {
		return nil, fmt.Errorf("read %s: %w", t.signal.what(), err)
	}
	if body, err = renderJSON(msg); err != nil {
		return nil, err
	}
	if compressed {
		body = zip(body)
	}
	out := r.Clone(r.Context())
	out.Header.Set("Content-Type", "application/json")
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return t.RoundTripper.RoundTrip(out)
}

// request returns an empty request with the signal.
func (s signal) request() proto.Message {
	switch s {
	case metrics:
		return &metricspb.ExportMetricsServiceRequest{}
	case logs:
		return &logspb.ExportLogsServiceRequest{}
	default:
		return &tracepb.ExportTraceServiceRequest{}
	}
}

func gunzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func zip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b) // a buffer takes everything
	_ = z.Close()
	return out.Bytes()
}

// idMembers are the members that OTLP encodes in hex, and Protobuf's JSON in base64 (OTLP
// specification, JSON Protobuf Encoding).
var idMembers = map[string]bool{"traceId": true, "spanId": true, "parentSpanId": true}

func renderJSON(msg proto.Message) ([]byte, error) {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(msg)
	if err != nil {
		return nil, fmt.Errorf("render OTLP: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("render OTLP: %w", err)
	}
	hexIDs(doc)
	return json.Marshal(doc)
}

func hexIDs(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			hexIDs(x)
		}
	case map[string]any:
		for name, x := range v {
			text, isText := x.(string)
			if !isText || !idMembers[name] {
				hexIDs(x)
				continue
			}
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				v[name] = hex.EncodeToString(raw)
			}
		}
	}
}
