package natsstore

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/blob/jetblob"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// erasable are stores of other services with data of runs, which a dispatcher erases.
type erasable struct {
	annotations, desk *jetkv.Store
	lanes, dead       *jetkv.Store
	webhooks          *jetkv.Store
	assets            *jetblob.Store
}

func annotationsBucket() jetkv.Config {
	return jetkv.Config{Bucket: "waybill_annotations", Description: "annotations of runs", Erasable: true}
}

// deskBucket has the keys view.TENANT.OWNER.ID and assignee.TENANT.RUN.QUESTION.
func deskBucket() jetkv.Config {
	return jetkv.Config{
		Bucket:      "waybill_desk",
		Description: "saved views, and assignees of questions",
		MarkerTTL:   time.Hour,
		Erasable:    true,
	}
}

func (s *Stores) openErasable(ctx context.Context, conn *nats.Conn, cfg jetstream.Config) (err error) {
	open := func(into **jetkv.Store, b jetkv.Config) {
		if err == nil {
			b.Replicas, b.OnDisk = cfg.Replicas, cfg.OnDisk
			*into, err = jetkv.Open(ctx, conn, b)
		}
	}
	e := &s.erasable
	open(&e.annotations, annotationsBucket())
	open(&e.desk, deskBucket())
	open(&e.webhooks, webhooksBucket())
	open(&e.lanes, lanesBucket())
	open(&e.dead, deadBucket())
	if err != nil {
		return err
	}
	b := assetBucket(cfg.Replicas)
	b.OnDisk = cfg.OnDisk
	e.assets, err = jetblob.Open(ctx, conn, b)
	return err
}

// WebhookRecords has the subscriptions of webhooks and the position of their feed, for a dispatcher.
func (s *Stores) WebhookRecords() kv.Store { return s.erasable.webhooks }

// EraseRun erases what the stores have of a run, except its log and its sealed values. It may be
// repeated.
func (s *Stores) EraseRun(ctx context.Context, run subject.Run, frames []*frame.Frame) error {
	for _, f := range frames {
		if err := assets.Erase(ctx, s.erasable.assets, run, f.Body); err != nil {
			return err
		}
	}
	for _, b := range []struct {
		store kv.Store
		keys  string
	}{ // the keys are those of layout.go
		{s.erasable.annotations, run.Tenant + "." + run.RunID + ".>"},
		{s.erasable.desk, "assignee." + run.Tenant + "." + run.RunID + ".>"},
		{s.erasable.lanes, "lane." + run.Tenant + ".*." + run.RunID},
		{s.erasable.dead, "dead." + run.Tenant + ".*." + run.RunID + ".>"},
		{s.Quarantine, "run." + run.Tenant + "." + run.RunID},
		{s.Snapshots, snapshot.Key(run)},
		{s.Retention, retention.Key(run)},
	} {
		if err := b.store.(*jetkv.Store).Erase(ctx, b.keys); err != nil { //nolint:forcetypeassert // all are buckets
			return err
		}
	}
	return nil
}

// EraseTenant erases what the stores have of a tenant without runs, except its workflows and its audit
// log. It may be repeated.
func (s *Stores) EraseTenant(ctx context.Context, tenant string) error {
	for _, b := range []struct {
		store kv.Store
		keys  string
	}{ // the keys are those of layout.go
		{s.erasable.webhooks, "*." + tenant + ".>"},
		{s.erasable.lanes, "*." + tenant + ".>"},
		{s.erasable.dead, "*." + tenant + ".>"},
		{s.erasable.annotations, tenant + ".>"},
		{s.erasable.desk, "*." + tenant + ".>"},
		{s.Claims, "*." + tenant + ".>"},
		{s.Quarantine, "*." + tenant + ".>"},
		{s.Retention, "*." + tenant + ".>"},
	} {
		if err := b.store.(*jetkv.Store).Forget(ctx, b.keys); err != nil { //nolint:forcetypeassert // all are buckets
			return err
		}
	}
	return nil
}

// EraseWorkflow erases a record of the bucket of workflows.
func (s *Stores) EraseWorkflow(ctx context.Context, key string) error {
	return s.Workflows.(*jetkv.Store).Forget(ctx, key) //nolint:forcetypeassert // it is a bucket
}
