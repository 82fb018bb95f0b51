package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"waybill.dev/waybill/internal/version"
)

const attributeService = "service.name"

// readResource reads the attributes of the process. The SDK would not decode their keys, and would send
// bytes that no collector accepts.
func (s *Settings) readResource(v *variables) {
	for pair := range strings.SplitSeq(v.get(varResource), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key, badKey := decode(key)
		value, badValue := decode(value)
		if !ok || key == "" || badKey != nil || badValue != nil {
			v.refuse(varResource, "want KEY=VALUE,KEY=VALUE, with %%2C for a comma in a value, and UTF-8")
			return
		}
		s.resource = append(s.resource, attribute.String(key, value))
	}
	switch name := v.get(varService); {
	case !utf8.ValidString(name):
		v.refuse(varService, "want UTF-8")
	case name != "":
		s.resource = append(s.resource, attribute.String(attributeService, name))
	}
}

// decode decodes a percent-encoded text.
func decode(text string) (string, error) {
	out, err := url.PathUnescape(strings.TrimSpace(text))
	if err == nil && !utf8.ValidString(out) {
		return "", errors.New("invalid UTF-8")
	}
	return out, err
}

// resourceOf describes this process. The attributes of the variables win over the defaults.
func resourceOf(ctx context.Context, service string, own []attribute.KeyValue) (*resource.Resource, error) {
	r, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(
			attribute.String(attributeService, service),
			attribute.String("service.version", version.Version),
			attribute.String("service.instance.id", uuid.NewString()),
		),
		resource.WithAttributes(own...),
	)
	if err != nil {
		return nil, fmt.Errorf("describe the process: %w", err)
	}
	return r, nil
}
