package host

import (
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/interrupttoken"
	"waybill.dev/waybill/services/gateway/webhook"
)

// Webhooks configure webhooks and callbacks, and the servers that they may call.
type Webhooks struct {
	// PerTenant limits the webhooks of a tenant, and separately the servers of its callbacks.
	PerTenant int
	// PendingRuns limits the runs with pending deliveries of one webhook.
	PendingRuns int
	// Deliveries limits the concurrent deliveries of a gateway. A tenant has a quarter of them, a webhook
	// a sixteenth.
	Deliveries int
	// Timeout limits one attempt, MaxPause the wait after a failure, MaxAttempts and MaxAge the attempts
	// of an event.
	Timeout, MaxPause, MaxAge time.Duration
	MaxAttempts               int
	// TokenLifetime is how long the tokens of callbacks are valid.
	TokenLifetime time.Duration
	// Allow are allowed networks, addresses and names that are not public.
	Allow []string
	// allowPrivate is the protocol's test switch, which has no flag.
	allowPrivate bool
}

func defaultWebhooks() Webhooks {
	p := webhook.DefaultPolicy()
	return Webhooks{
		PerTenant: p.PerTenant, PendingRuns: p.PendingRuns, Deliveries: p.Limits.Total,
		Timeout: p.Timeout, MaxPause: p.MaxRetry, MaxAge: p.MaxAge, MaxAttempts: p.MaxAttempts,
		TokenLifetime: interrupttoken.CallbackLifetime,
	}
}

// minPendingRuns leaves room for runs whose deliveries have just ended: they are counted for a second.
const minPendingRuns = 100

// Check returns all errors in the values, joined. It reads no variables.
func (o *Webhooks) Check() error {
	p := webhook.DefaultPolicy()
	var errs []error
	count := func(flag string, n, low, high int) {
		if n < low || n > high {
			errs = append(errs, fmt.Errorf("--%s %d: want %d to %d", flag, n, low, high))
		}
	}
	count("max-webhooks", o.PerTenant, 1, 10_000)
	count("webhook-max-runs", o.PendingRuns, minPendingRuns, 10_000_000)
	count("webhook-deliveries", o.Deliveries, 1, 10_000)
	count("webhook-max-attempts", o.MaxAttempts, 1, 1000)
	errs = append(errs,
		between("webhook-timeout", o.Timeout, 100*time.Millisecond, time.Minute),
		between("webhook-max-pause", o.MaxPause, p.FirstRetry, 24*time.Hour),
		between("webhook-max-age", o.MaxAge, time.Minute, 30*24*time.Hour),
		between("callback-token-lifetime", o.TokenLifetime, minTokenLifetime, maxTokenLifetime))
	if _, err := egress.NewPolicy(o.Allow); err != nil {
		errs = append(errs, fmt.Errorf("--webhook-allow: %w", err))
	}
	return errors.Join(errs...)
}

// policy returns the limits, timeouts and retries of deliveries.
func (o *Webhooks) policy() webhook.Policy {
	p := webhook.DefaultPolicy()
	p.PerTenant, p.PendingRuns = o.PerTenant, o.PendingRuns
	p.Limits = webhook.Limits{Total: o.Deliveries, PerTenant: max(1, o.Deliveries/4), PerWebhook: max(1, o.Deliveries/16)}
	p.Timeout, p.MaxRetry, p.MaxAge, p.MaxAttempts = o.Timeout, o.MaxPause, o.MaxAge, o.MaxAttempts
	p.Lease = max(p.Lease, 3*p.Timeout) // a worker renews it after an attempt
	return p
}

// between returns an error for a flag's time out of range.
func between(flag string, d, low, high time.Duration) error {
	if d < low || d > high {
		return fmt.Errorf("--%s %s: want %s to %s", flag, d, low, high)
	}
	return nil
}

// allowPrivateEnv is the protocol's switch for its test suite (OpenWOP host contract
// §10.6).
const allowPrivateEnv = "OPENWOP_WEBHOOK_ALLOW_PRIVATE"

// validate also reads the test switch, which must not be on in production.
func (o *Webhooks) validate(testSeams bool, getenv func(string) (string, bool)) error {
	errs := []error{o.Check()}
	switch v, _ := getenv(allowPrivateEnv); {
	case v == "" || v == "false":
	case v != "true":
		errs = append(errs, fmt.Errorf("environment %s=%q: want true or false", allowPrivateEnv, v))
	case !testSeams:
		errs = append(errs, fmt.Errorf("environment %s=true lets webhooks reach private networks, for tests alone: unset it, or give --test-seams; --webhook-allow makes exceptions", allowPrivateEnv))
	default:
		o.allowPrivate = true
	}
	return errors.Join(errs...)
}

// newWebhooks creates the webhooks of a gateway and starts delivering.
func (c *core) newWebhooks(p *publicServer, hostKey []byte, answers token.Keys) (*webhook.Service, error) {
	policy, err := egress.NewPolicy(p.opts.Webhooks.Allow)
	if err != nil {
		return nil, exit.Usagef("--webhook-allow: %w", err)
	}
	policy.AllowPrivate = p.opts.Webhooks.allowPrivate
	if policy.AllowPrivate {
		c.log.Warn("webhooks may reach private networks, over http, too: never in production", "environment", allowPrivateEnv)
	}
	tokens, err := interrupttoken.New(answers)
	if err != nil {
		return nil, exit.Usagef("--interrupt-keys: %w", err)
	}
	resolve := "" // receivers cannot use a loopback address
	if p.opts.URL != "" {
		resolve = p.baseURL()
	}
	st := &c.stores.Webhooks
	s, err := webhook.New(webhook.Config{
		HostKey:  hostKey,
		Egress:   policy,
		Delivery: p.opts.Webhooks.policy(),
	}, webhook.Deps{
		Log: c.runs(), Subscriptions: st.Subscriptions, Lanes: st.Lanes, Dead: st.Dead, Clock: time.Now, Logger: c.log,
		Questions: &webhook.CallbackQuestions{
			Dispatcher: c.clients.Dispatcher, EventLog: c.clients.EventLog, Tokens: tokens, Lifetime: p.opts.Webhooks.TokenLifetime, PublicURL: resolve, Clock: time.Now,
		},
	})
	if err != nil {
		return nil, err
	}
	c.group.Start(lifecycle.Part{Name: "webhooks", Run: s.Run})
	return s, nil
}
