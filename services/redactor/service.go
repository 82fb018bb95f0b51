// Package redactor is the service that knows the secrets of the host, its
// tenants and their runs, and takes them out of whatever is about to become
// durable or visible.
//
//	Redact, RedactStream -> secrets.Registry (which secrets apply) -> redact (take them out)
//	Register, Forget     -> secrets.Registry
//
// It fulfils OpenWOP envelope contract §11. Secrets live in memory only; they
// are never written, logged, or returned.
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
	// HostSecrets are scrubbed for everybody: provider keys, database
	// credentials, signing keys.
	HostSecrets []redact.Secret
	// Limits bound what is remembered.
	Limits secrets.Limits
	// Shapes also takes out what looks like a secret, though nobody has registered
	// it.
	Shapes bool
	// MaxItems is how many documents and texts one request may hold.
	MaxItems int
	// MaxBytes is the sum of their sizes, and the size of one piece of a stream.
	MaxBytes int
	// MaxDepth is how deep a document may be nested. Events wrap payloads wrap
	// values, so it is larger than the limit for a payload.
	MaxDepth int
}

// DefaultConfig is a configuration without host secrets.
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

// Warnings lists what is legal but surely not meant: host secrets too short to
// be matched are not protected.
func (c Config) Warnings() []string {
	var out []string
	for _, s := range c.HostSecrets {
		if len(s.Value) < redact.MinLength {
			out = append(out, fmt.Sprintf("redactor.host_secrets: %q has fewer than %d bytes and is not scrubbed", s.ID, redact.MinLength))
		}
	}
	return out
}

// Service is the redactor.
type Service struct {
	cfg      Config
	registry *secrets.Registry
}

// New checks the configuration and builds the service. It needs no
// collaborators, and starts nothing.
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

// Register puts the service's handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	redactorv1.RegisterRedactorServer(r, handler{s: s})
}

// Clean takes the host's secrets out of a text; for the logs of the process that
// the service runs in.
func (s *Service) Clean(text string) string {
	out, _ := s.registry.HostScrubber().Text(text)
	return out
}

func (s *Service) limits() strictjson.Limits {
	return strictjson.Limits{MaxBytes: s.cfg.MaxBytes, MaxDepth: s.cfg.MaxDepth}
}
