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

// callbackProblem says why a URL cannot be called back; "" when it can. It is judged as a
// webhook's is, and again when it is called (OpenWOP host contract §10.6).
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

// expectCallback has the run's questions told to its callbackUrl. It comes before the run
// is, so that none is missed.
func (s *Service) expectCallback(ctx context.Context, tenant string, req *openwopv1.CreateRunRequest) error {
	if req.CallbackUrl == nil || s.deps.Webhooks == nil {
		return nil
	}
	err := s.deps.Webhooks.EnsureCallback(ctx, tenant, req.GetCallbackUrl())
	if errors.Is(err, webhook.ErrManyCallbacks) {
		return fault.New(fault.Conflict, "/callbackUrl: %s; end one of those that GET /v1/webhooks lists", err)
	}
	if err != nil {
		return fault.New(fault.ServiceUnavailable, "/callbackUrl: it cannot be noted now who is to be asked; try again").After(time.Second).Wrap(err)
	}
	return nil
}
