package natsstore

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// waitingMarkerTTL is the lifetime of the marker of a deleted ticket. It is short because an
// autoscaler counts these messages, too.
const waitingMarkerTTL = time.Second

// openWaiting opens the buckets of runs that wait for a slot or a limit.
func (s *Stores) openWaiting(ctx context.Context, conn *nats.Conn, cfg jetstream.Config) error {
	if err := s.openBuckets(
		ctx, conn, cfg,
		bucket{
			&s.Waiting,
			jetkv.Config{Bucket: queue.Bucket, Description: "runs that wait for a slot or a limit", MarkerTTL: waitingMarkerTTL},
		},
		bucket{
			&s.Rates,
			jetkv.Config{
				Bucket:      queue.RateBucket,
				Description: "starts of runs under a rate limit",
				TTL:         workflow.MaxPeriod + time.Hour,
			},
		},
	); err != nil {
		return err
	}
	api, err := js.New(conn)
	if err != nil {
		return fmt.Errorf("open waiting runs: %w", err)
	}
	// Nothing is ever fetched from it: its pending messages are the tickets.
	_, err = natslink.Ensure(ctx, func(ctx context.Context) (js.Consumer, error) {
		return api.CreateOrUpdateConsumer(ctx, jetkv.Stream(queue.Bucket), js.ConsumerConfig{
			Durable: queue.ScalingConsumer, Description: "counts waiting runs for an autoscaler; never read",
			FilterSubject: queue.ScalingSubjects, AckPolicy: js.AckExplicitPolicy,
		})
	})
	if err != nil {
		return fmt.Errorf("open waiting runs: %w", err)
	}
	return nil
}
