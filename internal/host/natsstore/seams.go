package natsstore

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/seam"
)

// seamStores keep the state of the test seams, for all processes of the host. Both
// are nil unless test seams are served.
type seamStores struct {
	// State is durable: it holds only what has passed the redactor.
	State kv.Store
	// Scripts are never on a disk: tests plant secrets in the answers of models.
	Scripts mock.Scripts
}

// How long test state lives.
const (
	seamStateTTL  = 7 * 24 * time.Hour
	seamScriptTTL = 24 * time.Hour
)

// SeamBucket keeps the state of the test seams.
func SeamBucket(replicas int) jetkv.Config {
	return jetkv.Config{
		Bucket:      "waybill_seams",
		Description: "state of the test seams",
		Replicas:    replicas,
		TTL:         seamStateTTL,
	}
}

// ForSeams opens the buckets of the test seams.
func ForSeams(ctx context.Context, s *Stores, dial Dial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "seams")
	if err != nil {
		return err
	}
	if s.Seams.State, err = jetkv.Open(ctx, conn, SeamBucket(cfg.Replicas)); err != nil {
		return err
	}
	scripts, err := jetkv.Open(ctx, conn, jetkv.Config{
		Bucket:      "waybill_seam_scripts",
		Description: "what the mock provider says",
		Replicas:    cfg.Replicas,
		TTL:         seamScriptTTL,
		InMemory:    true,
	})
	if err != nil {
		return err
	}
	s.Seams.Scripts = seam.NewScripts(scripts)
	return nil
}
