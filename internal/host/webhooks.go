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

// Webhooks configure the servers that webhooks and callbacks may call.
type Webhooks struct {
	// Allow are allowed networks, addresses and names that are not public.
	Allow []string
	// allowPrivate is the protocol's test switch, which has no flag.
	allowPrivate bool
}

// allowPrivateEnv is the protocol's switch for its test suite (OpenWOP host contract
// §10.6).
const allowPrivateEnv = "OPENWOP_WEBHOOK_ALLOW_PRIVATE"

// validate also reads the test switch, which must not be on in production.
func (o *Webhooks) validate(testSeams bool, getenv func(string) (string, bool)) error {
	var errs []error
	if _, err := egress.NewPolicy(o.Allow); err != nil {
		errs = append(errs, fmt.Errorf("--webhook-allow: %w", err))
	}
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
		return nil, fmt.Errorf("%w: --webhook-allow: %w", exit.ErrUsage, err)
	}
	policy.AllowPrivate = p.opts.Webhooks.allowPrivate
	if policy.AllowPrivate {
		c.log.Warn("webhooks may reach private networks, over http, too: never in production", "environment", allowPrivateEnv)
	}
	tokens, err := interrupttoken.New(answers)
	if err != nil {
		return nil, fmt.Errorf("%w: --interrupt-keys: %w", exit.ErrUsage, err)
	}
	resolve := "" // receivers cannot use a loopback address
	if p.opts.URL != "" {
		resolve = p.baseURL()
	}
	st := &c.stores.Webhooks
	s, err := webhook.New(webhook.Config{
		HostKey:  hostKey,
		Egress:   policy,
		Delivery: webhook.DefaultPolicy(),
	}, webhook.Deps{
		Log: st.Log, Subscriptions: st.Subscriptions, Lanes: st.Lanes, Dead: st.Dead, Clock: time.Now, Logger: c.log,
		Questions: &webhook.CallbackQuestions{
			Dispatcher: c.clients.Dispatcher, EventLog: c.clients.EventLog, Tokens: tokens, PublicURL: resolve, Clock: time.Now,
		},
	})
	if err != nil {
		return nil, err
	}
	c.group.Start(lifecycle.Part{Name: "webhooks", Run: s.Run})
	return s, nil
}
