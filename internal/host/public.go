package host

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// Public are the settings of the public API.
type Public struct {
	HTTPAddr, GRPCAddr string
	// MetricsAddr is the operator's address; empty disables it.
	MetricsAddr string
	// URL and GRPC are the public addresses of the APIs; empty uses the listen addresses.
	URL, GRPC              string
	APIKeys, InterruptKeys []string
	TestSeams, Reflection  bool
	MaxBodyBytes           int64
	Audit                  Audit
	Webhooks               Webhooks
	Browser                Browser
	Admission              admission.Config
	Callers                Callers
	// RateLimits are limits of the form that admission.ParseRateRule reads. RateLimitFile names a file
	// of further ones; empty means none.
	RateLimits    []string
	RateLimitFile string
	// MaxStreams limits the open event streams of a gateway.
	MaxStreams int
	// TokenLifetime is how long the tokens of questions are valid.
	TokenLifetime time.Duration
}

// DefaultPublic are the settings without flags.
func DefaultPublic() Public {
	return Public{
		MaxBodyBytes:  1 << 20,
		Audit:         Audit{On: true},
		Browser:       defaultBrowser(),
		Admission:     admission.DefaultConfig(),
		Callers:       defaultCallers(),
		MaxStreams:    maxStreams,
		Webhooks:      defaultWebhooks(),
		TokenLifetime: interrupttoken.Lifetime,
	}
}

// maxStreams is the default of --max-streams.
const maxStreams = 10_000

// A token in a snapshot changes every 5 minutes, and must outlive that.
const (
	minTokenLifetime = 10 * time.Minute
	maxTokenLifetime = 31 * 24 * time.Hour
)

// maxBodyBytes keeps a run's record within one NATS message.
const maxBodyBytes = 6 << 20

// Validate returns all errors, joined.
func (o *Public) Validate() error {
	_, _, rates := o.rateLimits(slog.New(slog.DiscardHandler), os.LookupEnv) // the file is opened again
	return errors.Join(o.checkValues(), rates, o.Audit.validate(), o.Webhooks.validate(o.TestSeams, os.LookupEnv))
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *Public) Check() error {
	_, err := admission.ParseRateRules(o.RateLimits)
	if err != nil {
		err = fmt.Errorf("--rate-limit: %w", err)
	}
	return errors.Join(o.checkValues(), err, o.Audit.check(), o.Webhooks.Check())
}

func (o *Public) checkValues() error {
	_, keys := apiKeys(o.APIKeys)
	errs := []error{keys}
	for _, l := range []struct{ flag, addr string }{
		{"http-addr", o.HTTPAddr}, {"grpc-addr", o.GRPCAddr}, {"metrics-addr", o.MetricsAddr},
	} {
		errs = append(errs, checkListenAddr(l.flag, l.addr))
	}
	if u, err := url.Parse(o.URL); err != nil || o.URL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, fmt.Errorf("--public-url %q: want a URL such as https://waybill.example", o.URL))
	}
	if _, _, err := net.SplitHostPort(o.GRPC); o.GRPC != "" && err != nil {
		errs = append(errs, fmt.Errorf("--public-grpc-addr %q: want HOST:PORT, such as grpc.waybill.example:443", o.GRPC))
	}
	if _, err := token.ParseKeys(o.InterruptKeys, nil); err != nil {
		errs = append(errs, fmt.Errorf("--interrupt-keys: %w", err))
	}
	if o.MaxBodyBytes < 1 || o.MaxBodyBytes > maxBodyBytes {
		errs = append(errs, fmt.Errorf("--max-request-body-bytes %d: want 1 to %d (a run's record must fit one NATS message)", o.MaxBodyBytes, maxBodyBytes))
	}
	errs = append(errs, o.Browser.validate(o.URL))
	if err := o.Admission.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--max-requests, --max-starts, --max-unknown-requests, --start-delay: %w", err))
	}
	errs = append(errs, o.Callers.validate("--max-request-body-bytes", o.MaxBodyBytes))
	errs = append(errs, between("token-lifetime", o.TokenLifetime, minTokenLifetime, maxTokenLifetime))
	if o.MaxStreams < 1 {
		errs = append(errs, fmt.Errorf("--max-streams %d: want at least 1", o.MaxStreams))
	}
	return errors.Join(errs...)
}

// checkListenAddr rejects an address on which no server can listen; empty means that there is none.
func checkListenAddr(flag, addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("--%s %q: want HOST:PORT, such as 127.0.0.1:8080; port 0 uses a free one", flag, addr)
	}
	return nil
}

// DevKey is the API key of a host without configured keys. It is not a secret.
const DevKey = "dev-key"

// FirstKey is the key of the first KEY=TENANT:SCOPES.
func FirstKey(specs []string) string {
	key, _, _ := strings.Cut(specs[0], "=")
	return key
}

// parseAPIKeys is apiKeys with the exit status of a wrong flag.
func parseAPIKeys(flags []string) ([]auth.Spec, error) {
	specs, err := apiKeys(flags)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return specs, nil
}

// apiKeys reads the values of --api-key, and returns all errors, joined. None has a key.
func apiKeys(flags []string) ([]auth.Spec, error) {
	var (
		specs []auth.Spec
		errs  []error
	)
	for i, f := range flags {
		s, err := auth.ParseSpec(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("--api-key no. %d: %w", i+1, err))
		}
		if slices.ContainsFunc(specs, func(other auth.Spec) bool { return err == nil && other.Key == s.Key }) {
			errs = append(errs, fmt.Errorf("--api-key no. %d: an earlier one has the same key; give the key all its scopes in one", i+1))
		}
		specs = append(specs, s)
	}
	return specs, errors.Join(errs...)
}
