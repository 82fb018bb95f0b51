package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// ListWebhooks lists the tenant's webhooks.
func (s *Service) ListWebhooks(ctx context.Context, req *hostv1.ListWebhooksRequest) (*hostv1.ListWebhooksResponse, error) {
	hooks, err := s.webhookService()
	if err != nil {
		return nil, err
	}
	all, err := hooks.List(ctx, auth.From(ctx).Tenant)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(all, func(e *subscription.Entry) string { return e.ID }, req.Limit, req.GetCursor())
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListWebhooksResponse{NextCursor: next}
	for _, e := range page {
		out.Webhooks = append(out.Webhooks, webhookOf(e, s.deps.Clock()))
	}
	return out, nil
}

func webhookOf(e *subscription.Entry, now time.Time) *hostv1.Webhook {
	h := &e.State.Health
	w := &hostv1.Webhook{
		WebhookId: e.ID, Url: e.URL, Tags: e.Tags, CreatedAt: e.CreatedAt, Status: string(h.Condition(now)),
		ConsecutiveFailures: int32(h.InRow), RecentFailures: int32(h.Recent(now)), //nolint:gosec // G115: small numbers
		SecretFingerprint: e.State.Key.Fingerprint,
	}
	for _, t := range e.Events {
		w.Events = append(w.Events, string(t))
	}
	if h.Condition(now) == subscription.Open {
		w.OpenUntil = stringOrNil(wire.FormatTime(h.OpenUntil))
	}
	if d := e.State.Dropped; d.Events > 0 {
		w.DroppedEvents, w.FirstDroppedAt, w.LastDroppedAt = d.Events, stringOrNil(wire.FormatTime(d.First)), stringOrNil(wire.FormatTime(d.Last))
	}
	if previous, ok := e.State.Overlap(now); ok {
		w.PreviousSecretFingerprint, w.PreviousValidUntil = stringOrNil(previous.Fingerprint), stringOrNil(wire.FormatTime(e.State.PreviousUntil))
	}
	return w
}

// pageOf returns a page of a list that is sorted by key.
func pageOf[T any](all []T, key func(T) string, limit *int32, cursor string) ([]T, *string, error) {
	size, err := pageSize(limit)
	if err != nil {
		return nil, nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, nil, errCursor()
	}
	from, found := slices.BinarySearchFunc(all, string(after), func(v T, k string) int { return strings.Compare(key(v), k) })
	if found {
		from++
	}
	rest := all[from:]
	if len(rest) <= int(size) {
		return rest, nil, nil
	}
	next := base64.RawURLEncoding.EncodeToString([]byte(key(rest[size-1])))
	return rest[:size], &next, nil
}

// Values of the parameter status.
const (
	deliveriesFailed  = "failed"
	deliveriesPending = "pending"
)

// ListWebhookDeliveries lists failed or pending deliveries of a webhook.
func (s *Service) ListWebhookDeliveries(ctx context.Context, req *hostv1.ListWebhookDeliveriesRequest) (*hostv1.ListWebhookDeliveriesResponse, error) {
	hooks, err := s.webhookService()
	if err != nil {
		return nil, err
	}
	status := req.GetStatus()
	if req.Status == nil {
		status = deliveriesFailed
	}
	var all []*hostv1.WebhookDelivery
	switch tenant := auth.From(ctx).Tenant; status {
	case deliveriesFailed:
		all, err = deadLetters(ctx, hooks, tenant, req.GetWebhookId())
	case deliveriesPending:
		all, err = pending(ctx, hooks, tenant, req.GetWebhookId())
	default:
		return nil, fault.OneOf("status", []string{deliveriesFailed, deliveriesPending})
	}
	if err != nil {
		return nil, webhookFault(err)
	}
	slices.SortFunc(all, func(a, b *hostv1.WebhookDelivery) int { return strings.Compare(deliveryKey(a), deliveryKey(b)) })
	out := &hostv1.ListWebhookDeliveriesResponse{}
	out.Deliveries, out.NextCursor, err = pageOf(all, deliveryKey, req.Limit, req.GetCursor())
	return out, err
}

// deliveryKey sorts deliveries by run and sequence; sequences have at most ten digits.
func deliveryKey(d *hostv1.WebhookDelivery) string {
	return fmt.Sprintf("%s.%010d", d.GetRunId(), d.GetSequence())
}

func deadLetters(ctx context.Context, hooks *webhook.Service, tenant, id string) ([]*hostv1.WebhookDelivery, error) {
	letters, err := hooks.DeadLetters(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	out := make([]*hostv1.WebhookDelivery, len(letters))
	for i, l := range letters {
		out[i] = &hostv1.WebhookDelivery{
			RunId: l.RunID, Sequence: int32(l.Sequence), Status: deliveriesFailed, Attempts: int32(l.Attempts), //nolint:gosec // G115: small numbers
			Type: stringOrNil(string(l.Type)), Reason: stringOrNil(l.Reason), FailedAt: stringOrNil(l.At),
		}
	}
	return out, nil
}

func pending(ctx context.Context, hooks *webhook.Service, tenant, id string) ([]*hostv1.WebhookDelivery, error) {
	lanes, err := hooks.PendingLanes(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	out := make([]*hostv1.WebhookDelivery, len(lanes))
	for i, l := range lanes {
		out[i] = &hostv1.WebhookDelivery{
			RunId: l.RunID, Sequence: int32(l.Seq), Status: deliveriesPending, Attempts: int32(l.Attempts), Reason: stringOrNil(l.Reason), //nolint:gosec // G115: small numbers
		}
		if !l.NextAt.IsZero() {
			out[i].NextAttemptAt = stringOrNil(wire.FormatTime(l.NextAt))
		}
	}
	return out, nil
}

// RedeliverWebhookEvent sends a failed delivery once more, and returns the outcome of this attempt.
func (s *Service) RedeliverWebhookEvent(ctx context.Context, req *hostv1.RedeliverWebhookEventRequest) (*hostv1.RedeliverWebhookEventResponse, error) {
	hooks, err := s.webhookService()
	if err != nil {
		return nil, err
	}
	switch {
	case req.RunId == nil:
		return nil, fault.InvalidBody("/runId", "required: the run of the event")
	case req.Sequence == nil:
		return nil, fault.InvalidBody("/sequence", "required: the sequence of the event")
	case req.GetSequence() < 0:
		return nil, fault.InvalidBody("/sequence", "want an integer of at least 0")
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	res, err := hooks.Redeliver(ctx, auth.From(ctx).Tenant, req.GetWebhookId(), req.GetRunId(), int(req.GetSequence()))
	if errors.Is(err, webhook.ErrNoDeadLetter) {
		return nil, fault.New(fault.NotFound, "this webhook has no failed delivery of the event; it may have been delivered since")
	}
	if errors.Is(err, webhook.ErrBusy) {
		return nil, fault.New(fault.ServiceUnavailable, "the webhook or your tenant has many deliveries at the moment; try again").After(time.Second)
	}
	if err != nil {
		return nil, webhookFault(err)
	}
	return &hostv1.RedeliverWebhookEventResponse{Delivered: res.Reason == "", Reason: stringOrNil(res.Reason)}, nil
}
