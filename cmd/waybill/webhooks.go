package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/interrupttoken"
	"waybill.dev/waybill/services/gateway/webhook"
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

// webhookStores are what webhooks keep.
type webhookStores struct {
	log                        *jetstream.Log
	subscriptions, lanes, dead kv.Store
}

// How long the outbox remembers that something was there, and what was given up.
const (
	laneMarkerTTL = 10 * time.Minute
	deadTTL       = 30 * 24 * time.Hour
)

// openWebhooks opens the buckets of webhooks, and the log over a connection of their
// own.
func (s *stores) openWebhooks(ctx context.Context, dial natsDial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "webhooks")
	if err != nil {
		return err
	}
	if s.webhooks.log, err = jetstream.Open(ctx, conn, cfg); err != nil {
		return err
	}
	return s.openBuckets(
		ctx, conn, cfg,
		bucket{&s.webhooks.subscriptions, jetkv.Config{Bucket: "waybill_webhooks", Description: "webhooks"}},
		bucket{&s.webhooks.lanes, jetkv.Config{Bucket: "waybill_webhook_lanes", Description: "what webhooks are still to deliver", MarkerTTL: laneMarkerTTL}},
		bucket{&s.webhooks.dead, jetkv.Config{Bucket: "waybill_webhook_dead", Description: "what webhooks gave up", TTL: deadTTL}},
	)
}

// buildWebhooks makes the webhooks of the gateway.
func (h *host) buildWebhooks(hostKey []byte, answers token.Keys) (*webhook.Service, error) {
	policy, err := egress.NewPolicy(h.opts.webhooks.allow)
	if err != nil {
		return nil, fmt.Errorf("%w: --webhook-allow: %w", errUsage, err)
	}
	policy.AllowPrivate = h.opts.webhooks.allowPrivate
	if policy.AllowPrivate {
		h.log.Warn("webhooks may reach private networks, over http, too: never in production", "environment", allowPrivateEnv)
	}
	tokens, err := interrupttoken.New(answers)
	if err != nil {
		return nil, fmt.Errorf("%w: --interrupt-keys: %w", errUsage, err)
	}
	resolve := "" // an address that only this machine has is of no use to a receiver
	if h.opts.publicURL != "" {
		resolve = h.baseURL()
	}
	st := &h.stores.webhooks
	s, err := webhook.New(webhook.Config{HostKey: hostKey, Egress: policy, Delivery: webhook.DefaultPolicy()}, webhook.Deps{
		Log: st.log, Subscriptions: st.subscriptions, Lanes: st.lanes, Dead: st.dead, Clock: time.Now, Logger: h.log,
		Questions: &webhook.CallbackQuestions{
			Dispatcher: h.clients.dispatcher, EventLog: h.clients.events, Tokens: tokens, PublicURL: resolve, Clock: time.Now,
		},
	})
	if err != nil {
		return nil, err
	}
	h.webhooks = s
	h.group.Start(lifecycle.Part{Name: "webhooks", Run: s.Run})
	return s, nil
}
