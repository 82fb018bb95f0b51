package engine

import (
	"context"
	"errors"
	"time"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/webhook"
)

// callbackProblem returns why a URL must not be called; "" if it may be. It is checked like a
// webhook's URL, and again for each call (OpenWOP host contract §10.6).
func (s *Service) callbackProblem(ctx context.Context, url string) string {
	var err error
	if s.deps.Webhooks != nil {
		err = s.deps.Webhooks.CheckURL(ctx, url)
	} else {
		_, err = (egress.Policy{}).CheckURL(url)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// ensureCallback subscribes a run's callbackUrl to its questions. It runs before the run is
// created, so that no question is missed.
func (s *Service) ensureCallback(ctx context.Context, tenant string, req *openwopv1.CreateRunRequest) error {
	if req.CallbackUrl == nil || s.deps.Webhooks == nil {
		return nil
	}
	err := s.deps.Webhooks.EnsureCallback(ctx, tenant, req.GetCallbackUrl())
	if errors.Is(err, webhook.ErrManyCallbacks) {
		return fault.New(fault.Conflict, "/callbackUrl: %s; delete one that GET /v1/webhooks lists", err)
	}
	if err != nil {
		return fault.New(fault.ServiceUnavailable, "/callbackUrl: the callback could not be stored; retry").After(time.Second).Wrap(err)
	}
	return nil
}
