// Package asyncapi renders the AsyncAPI 3.0 description of what the host sends: event streams,
// webhooks, callbacks and the run log over NATS. Its schemas are those of the OpenAPI document.
package asyncapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"

	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/services/gateway/openapi"
)

//go:embed asyncapi.yaml
var text []byte

type object = map[string]any

// Document renders the description for a host with a base path: empty, or a path such as /a/b.
func Document(base string) ([]byte, error) {
	var doc object
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("asyncapi.yaml: %w", err)
	}
	schemas, err := openapi.Schemas(doc)
	if err != nil {
		return nil, err
	}
	for name, s := range schemas {
		schemas[name] = withoutDiscriminator(s.(object))
	}
	doc["info"].(object)["version"] = version.Version
	doc["components"].(object)["schemas"] = schemas
	if base != "" {
		doc["servers"].(object)["http"].(object)["pathname"] = base
	}
	return json.Marshal(doc)
}

// withoutDiscriminator returns a schema without its discriminator, which is an object in OpenAPI and a
// string in AsyncAPI. The variants of oneOf exclude each other without it.
func withoutDiscriminator(s object) object {
	out := object{}
	for name, v := range s {
		if name != "discriminator" {
			out[name] = v
		}
	}
	return out
}

// Handler serves the description.
func Handler(base string) http.Handler {
	return openapi.Serve(func() ([]byte, error) { return Document(base) })
}
