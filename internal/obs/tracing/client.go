package tracing

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// sendTimeout limits one request to a collector.
const sendTimeout = 10 * time.Second

// tracesURL returns the URL for posting spans.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("otlp-endpoint: must be a URL such as http://localhost:4318") // without the value, which may contain a password
	}
	return strings.TrimSuffix(endpoint, "/") + "/v1/traces", nil
}

func newClient(cfg Config) (otlptrace.Client, error) {
	target, err := tracesURL(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if cfg.Protocol == HTTPJSON {
		return &jsonClient{url: target, http: &http.Client{Timeout: sendTimeout}}, nil
	}
	return otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(target), otlptracehttp.WithTimeout(sendTimeout)), nil
}

// jsonClient sends OTLP as JSON, which the SDK does not support.
type jsonClient struct {
	url  string
	http *http.Client
}

// Start does nothing.
func (c *jsonClient) Start(context.Context) error { return nil }

// Stop closes idle connections.
func (c *jsonClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces posts a batch.
func (c *jsonClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := renderJSON(&collectorpb.ExportTraceServiceRequest{ResourceSpans: spans})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // so that the connection can be reused
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the collector answered %d", res.StatusCode)
	}
	return nil
}

// idMembers are the members that OTLP encodes in hex, and Protobuf's JSON in base64 (OTLP
// specification, JSON Protobuf Encoding).
var idMembers = map[string]bool{"traceId": true, "spanId": true, "parentSpanId": true}

func renderJSON(req *collectorpb.ExportTraceServiceRequest) ([]byte, error) {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("render spans: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, fmt.Errorf("render spans: %w", err)
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
