package main

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/dispatcher/mockscript"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// seamStores keep the state of the test seams, for all processes of the host. Both
// are nil unless test seams are served.
type seamStores struct {
	// state outlives the processes: it holds only what has passed the redactor.
	state kv.Store
	// scripts are never on a disk: tests plant secrets in what a model says.
	scripts mock.Scripts
}

// How long test state lives.
const (
	seamStateTTL  = 7 * 24 * time.Hour
	seamScriptTTL = 24 * time.Hour
)

// seamBucket keeps the state of the test seams.
func seamBucket(replicas int) jetkv.Config {
	return jetkv.Config{Bucket: "waybill_seams", Description: "state of the test seams", Replicas: replicas, TTL: seamStateTTL}
}

// seamNeeds are the buckets of the test seams.
func seamNeeds(ctx context.Context, s *stores, dial natsDial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "seams")
	if err != nil {
		return err
	}
	if s.seams.state, err = jetkv.Open(ctx, conn, seamBucket(cfg.Replicas)); err != nil {
		return err
	}
	scripts, err := jetkv.Open(ctx, conn, jetkv.Config{
		Bucket: "waybill_seam_scripts", Description: "what the mock provider says", Replicas: cfg.Replicas, TTL: seamScriptTTL, InMemory: true,
	})
	if err != nil {
		return err
	}
	s.seams.scripts = mockscript.New(scripts)
	return nil
}
