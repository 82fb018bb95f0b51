package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/egress"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/interrupttoken"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/callback"
	"waybill.dev/waybill/services/gateway/webhook/deliver"
)

// webhookOptions say which servers outside may be told of events.
type webhookOptions struct {
	allow []string
	// allowPrivate is the protocol's test switch, which is no flag.
	allowPrivate bool
}

func (o *webhookOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.allow, "webhook-allow", nil,
		"network (10.1.0.0/16), address or name (hooks.corp, .corp) that webhooks and callbacks may call though it is not public (repeatable); a name's addresses have to be allowed, too")
}

// allowPrivateEnv is the protocol's switch for its test suite (OpenWOP host contract
// §10.6).
const allowPrivateEnv = "OPENWOP_WEBHOOK_ALLOW_PRIVATE"

// validate reads the switch as well: it must not be on in production.
func (o *webhookOptions) validate(testSeams bool, getenv func(string) (string, bool)) error {
	var errs []error
	if _, err := egress.NewPolicy(o.allow); err != nil {
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

// buildWebhooks makes the webhooks of the gateway.
func (h *Host) buildWebhooks(hostKey []byte, answers token.Keys) (*webhook.Service, error) {
	policy, err := egress.NewPolicy(h.opts.webhooks.allow)
	if err != nil {
		return nil, fmt.Errorf("%w: --webhook-allow: %w", exit.ErrUsage, err)
	}
	policy.AllowPrivate = h.opts.webhooks.allowPrivate
	if policy.AllowPrivate {
		h.Log.Warn("webhooks may reach private networks, over http, too: never in production", "environment", allowPrivateEnv)
	}
	tokens, err := interrupttoken.New(answers)
	if err != nil {
		return nil, fmt.Errorf("%w: --interrupt-keys: %w", exit.ErrUsage, err)
	}
	resolve := "" // an address that only this machine has is of no use to a receiver
	if h.opts.PublicURL != "" {
		resolve = h.baseURL()
	}
	st := &h.stores.Webhooks
	s, err := webhook.New(webhook.Config{HostKey: hostKey, Egress: policy, Delivery: deliver.DefaultPolicy()}, webhook.Deps{
		Log: st.Log, Subscriptions: st.Subscriptions, Lanes: st.Lanes, Dead: st.Dead, Clock: time.Now, Logger: h.Log,
		Questions: &callback.Questions{
			Dispatcher: h.Clients.Dispatcher, EventLog: h.Clients.events, Tokens: tokens, PublicURL: resolve, Clock: time.Now,
		},
	})
	if err != nil {
		return nil, err
	}
	h.webhooks = s
	h.Group.Start(lifecycle.Part{Name: "webhooks", Run: s.Run})
	return s, nil
}
