package natsstore

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// webhookStores are the stores of webhooks.
type webhookStores struct {
	Log                        *jetstream.Log
	Subscriptions, Lanes, Dead kv.Store
}

// How long the outbox remembers deleted lanes, and deliveries that failed for good.
const (
	laneMarkerTTL = 10 * time.Minute
	deadTTL       = 30 * 24 * time.Hour
)

// openWebhooks opens the buckets of webhooks, and the log over a connection of their
// own.
func (s *Stores) openWebhooks(ctx context.Context, dial Dial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "webhooks")
	if err != nil {
		return err
	}
	if s.Webhooks.Log, err = jetstream.Open(ctx, conn, cfg); err != nil {
		return err
	}
	return s.openBuckets(
		ctx, conn, cfg,
		bucket{&s.Webhooks.Subscriptions, webhooksBucket()},
		bucket{&s.Webhooks.Lanes, lanesBucket()},
		bucket{&s.Webhooks.Dead, deadBucket()},
	)
}

func webhooksBucket() jetkv.Config {
	return jetkv.Config{Bucket: "waybill_webhooks", Description: "webhooks", Erasable: true}
}

func lanesBucket() jetkv.Config {
	return jetkv.Config{
		Bucket:      "waybill_webhook_lanes",
		Description: "what webhooks are still to deliver",
		MarkerTTL:   laneMarkerTTL,
		Erasable:    true,
	}
}

func deadBucket() jetkv.Config {
	return jetkv.Config{Bucket: "waybill_webhook_dead", Description: "what webhooks gave up", TTL: deadTTL, Erasable: true}
}
