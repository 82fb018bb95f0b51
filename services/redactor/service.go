// Package redactor is the service that holds the secrets of the host, its tenants and
// their runs, and removes them from data before it becomes durable or visible.
//
//	Redact, RedactStream -> secrets.Registry (which secrets apply) -> redact (remove them)
//	Register, Forget     -> secrets.Registry
//
// It implements OpenWOP envelope contract §11. Secrets are in memory only. They are
// never written, logged, or returned.
package redactor

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
	"waybill.dev/waybill/services/redactor/secrets"
)

// Config is what an operator sets.
type Config struct {
	// HostSecrets are redacted for all tenants: provider keys, database credentials,
	// signing keys.
	HostSecrets []redact.Secret
	// Limits are the limits of the registry.
	Limits secrets.Limits
	// Shapes also redacts unregistered text that looks like a secret.
	Shapes bool
	// MaxItems limits the documents and texts of one request.
	MaxItems int
	// MaxBytes limits the total size of a request, and one piece of a stream.
	MaxBytes int
	// MaxDepth limits the nesting of a document. It is larger than the limit of a payload,
	// since events contain payloads.
	MaxDepth int
}

// DefaultConfig returns a configuration without host secrets.
func DefaultConfig() Config {
	return Config{Shapes: true, Limits: secrets.DefaultLimits, MaxItems: 1024, MaxBytes: 16 << 20, MaxDepth: 128}
}

// Validate reports every unusable value.
func (c Config) Validate() error {
	var errs []error
	positive := func(name string, n int) {
		if n <= 0 {
			errs = append(errs, fmt.Errorf("redactor.%s: %d: needs a positive number", name, n))
		}
	}
	positive("max_items", c.MaxItems)
	positive("max_bytes", c.MaxBytes)
	positive("max_depth", c.MaxDepth)
	positive("limits.scopes", c.Limits.Scopes)
	positive("limits.secrets", c.Limits.Secrets)
	positive("limits.value_bytes", c.Limits.ValueBytes)
	positive("limits.scope_bytes", c.Limits.ScopeBytes)
	for i, s := range c.HostSecrets {
		if err := s.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("redactor.host_secrets[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Warnings lists host secrets that are too short to be matched, and so not redacted.
func (c Config) Warnings() []string {
	var out []string
	for _, s := range c.HostSecrets {
		if len(s.Value) < redact.MinLength {
			out = append(out, fmt.Sprintf("redactor.host_secrets: %q has fewer than %d bytes and is not redacted", s.ID, redact.MinLength))
		}
	}
	return out
}

// Service is the redactor.
type Service struct {
	cfg      Config
	registry *secrets.Registry
}

// New validates the configuration and builds the service. It starts nothing.
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	var shapes *redact.Shapes
	if cfg.Shapes {
		shapes = redact.DefaultShapes()
	}
	registry, err := secrets.New(cfg.HostSecrets, cfg.Limits, shapes)
	if err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, registry: registry}, nil
}

// Register registers the service's handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	redactorv1.RegisterRedactorServer(r, handler{s: s})
}

// Clean redacts the host's secrets in a text, for the logs of this process.
func (s *Service) Clean(text string) string {
	out, _ := s.registry.HostScrubber().Text(text)
	return out
}

func (s *Service) limits() strictjson.Limits {
	return strictjson.Limits{MaxBytes: s.cfg.MaxBytes, MaxDepth: s.cfg.MaxDepth}
}
