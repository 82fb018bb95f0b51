package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/redaction"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// RegisterWebhook registers a webhook (OpenWOP host contract §10.5).
func (s *Service) RegisterWebhook(ctx context.Context, req *openwopv1.RegisterWebhookRequest) (*openwopv1.RegisterWebhookResponse, error) {
	hooks, err := s.webhookService()
	if err != nil {
		return nil, err
	}
	if err := checkWebhook(req); err != nil {
		return nil, err
	}
	tenant := auth.From(ctx).Tenant
	if req.TenantId != nil && req.GetTenantId() != tenant {
		return nil, fault.New(fault.Forbidden, "/tenantId: the credential is another tenant's; leave it out")
	}
	if err := hooks.CheckURL(ctx, req.GetUrl()); err != nil {
		return nil, urlFault(err)
	}
	if err := s.rejectSecrets(ctx, tenant, req); err != nil {
		return nil, err
	}
	var events []wire.EventType
	for _, name := range req.GetEvents() {
		if t := wire.EventType(name); !slices.Contains(events, t) {
			events = append(events, t)
		}
	}
	e, err := hooks.Register(ctx, tenant, req.GetUrl(), events, req.GetTags())
	if errors.Is(err, webhook.ErrFull) {
		return nil, fault.New(fault.Conflict, "%s; delete one", err)
	}
	if err != nil {
		return nil, err
	}
	out := &openwopv1.RegisterWebhookResponse{WebhookId: e.ID, SecretFingerprint: e.State.Key.Fingerprint}
	s.restoreSecret(ctx, out)
	return out, nil
}

// markedSecret starts the redactor's marker for a known secret; markedShape starts that for
// text that only looks like a secret.
const markedSecret, markedShape = "[REDACTED:", "[REDACTED:shape."

// rejectSecrets rejects a registration that contains a secret known to the host, because
// registrations are stored and shown again. Text that only looks like a secret is accepted:
// chat webhooks have their own token in the URL.
func (s *Service) rejectSecrets(ctx context.Context, tenant string, req *openwopv1.RegisterWebhookRequest) error {
	given := append([]string{req.GetUrl()}, req.GetTags()...)
	clean, err := s.deps.Texts(ctx, tenant, "", given)
	if err != nil || len(clean) != len(given) {
		return redaction.Unavailable("the webhook was not stored", err)
	}
	for i, text := range clean {
		marks := func(text string) int { return strings.Count(text, markedSecret) - strings.Count(text, markedShape) }
		if marks(text) <= marks(given[i]) {
			continue
		}
		at := "/url"
		if i > 0 {
			at = "/tags/" + strconv.Itoa(i-1)
		}
		return fault.InvalidBody(at, "contains a secret known to this host; remove it")
	}
	return nil
}

// webhookService returns the webhooks, or an error if this host has none.
func (s *Service) webhookService() (*webhook.Service, error) {
	if s.deps.Webhooks == nil {
		return nil, fault.New(fault.NotFound, "this host serves no webhooks")
	}
	return s.deps.Webhooks, nil
}

// maxEventTypes limits the event types of a webhook; the protocol has about a hundred.
const maxEventTypes = 256

// checkWebhook validates a registration without resolving the URL.
func checkWebhook(req *openwopv1.RegisterWebhookRequest) error {
	var p problems
	if req.GetUrl() == "" {
		p.add("/url", "required: an https URL, such as https://hooks.example/waybill")
	} else if _, err := (egress.Policy{}).CheckURL(req.GetUrl()); err != nil {
		if malformed, ok := errors.AsType[*egress.MalformedError](err); ok {
			p.add("/url", "%s", malformed.Reason)
		}
	}
	switch n := len(req.GetEvents()); {
	case n == 0:
		p.add("/events", "required: at least one event type, such as run.completed")
	case n > maxEventTypes:
		p.add("/events", "want at most %d event types, got %d", maxEventTypes, n)
	default:
		for i, name := range req.GetEvents() {
			if !wire.EventType(name).Known() {
				p.add("/events/"+strconv.Itoa(i), "neither a protocol event type nor a vendor event type; want a name such as run.completed")
			}
		}
	}
	if req.Secret != nil {
		p.add("/secret", "the host generates the secret and returns it; omit this member")
	}
	checkTags(&p, req.GetTags())
	return p.err()
}

// urlFault converts an error of a URL check.
func urlFault(err error) error {
	if malformed, ok := errors.AsType[*egress.MalformedError](err); ok {
		var p problems
		p.add("/url", "%s", malformed.Reason)
		return p.err()
	}
	if refused, ok := errors.AsType[*egress.RefusedError](err); ok {
		return fault.New(fault.WebhookURLRejected, "/url: %s", refused.Reason).
			With("problems", []map[string]string{{"path": "/url", "message": refused.Reason}})
	}
	return err
}

// UnregisterWebhook deletes a webhook.
func (s *Service) UnregisterWebhook(ctx context.Context, req *openwopv1.UnregisterWebhookRequest) (*emptypb.Empty, error) {
	hooks, err := s.webhookService()
	if err != nil {
		return nil, err
	}
	tenant := auth.From(ctx).Tenant
	if req.TenantId != nil && req.GetTenantId() != tenant {
		return nil, errWebhookNotFound() // do not reveal another tenant's webhooks
	}
	if err := hooks.Unregister(ctx, tenant, req.GetWebhookId()); err != nil {
		return nil, webhookFault(err)
	}
	return &emptypb.Empty{}, nil
}

func errWebhookNotFound() error {
	return fault.New(fault.SubscriptionNotFound, "no webhook with this id in your tenant")
}

func webhookFault(err error) error {
	if errors.Is(err, subscription.ErrNotFound) {
		return errWebhookNotFound()
	}
	return err
}

// Validity of the previous secret after a rotation: default and maximum.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 7 * 24 * time.Hour
)

// RotateWebhookSecret makes a new secret and returns it once.
func (s *Service) RotateWebhookSecret(ctx context.Context, req *hostv1.RotateWebhookSecretRequest) (*hostv1.RotateWebhookSecretResponse, error) {
	hooks, err := s.webhookService()
	if err != nil {
		return nil, err
	}
	overlap := defaultOverlap
	if req.OverlapSeconds != nil {
		overlap = time.Duration(req.GetOverlapSeconds()) * time.Second
	}
	if overlap < 0 || overlap > maxOverlap {
		return nil, fault.InvalidBody("/overlapSeconds", "want 0 to %d", maxOverlap/time.Second)
	}
	e, err := hooks.Rotate(ctx, auth.From(ctx).Tenant, req.GetWebhookId(), overlap)
	if err != nil {
		return nil, webhookFault(err)
	}
	out := &hostv1.RotateWebhookSecretResponse{
		WebhookId: e.ID, SecretFingerprint: e.State.Key.Fingerprint, Generation: int32(e.State.Key.Generation), //nolint:gosec // G115: counts rotations
	}
	if overlap > 0 {
		out.PreviousSecretFingerprint, out.PreviousValidUntil = stringOrNil(e.State.Previous.Fingerprint), stringOrNil(wire.FormatTime(e.State.PreviousUntil))
	}
	s.restoreSecret(ctx, out)
	return out, nil
}

// secretAnswer are the responses that contain a secret. Their idempotency record must not
// contain it.
type secretAnswer interface {
	*openwopv1.RegisterWebhookResponse | *hostv1.RotateWebhookSecretResponse
}

// withoutSecret returns a response as it may be recorded.
func withoutSecret(res proto.Message) proto.Message {
	switch r := res.(type) {
	case *openwopv1.RegisterWebhookResponse:
		return cloneWith(r, func(c *openwopv1.RegisterWebhookResponse) { c.Secret = "" })
	case *hostv1.RotateWebhookSecretResponse:
		return cloneWith(r, func(c *hostv1.RotateWebhookSecretResponse) { c.Secret = "" })
	}
	return res
}

func cloneWith[M interface {
	proto.Message
	secretAnswer
}](m M, f func(M)) M {
	c := proto.CloneOf(m)
	f(c)
	return c
}

// restoreSecret sets the secret of a response: it derives from the other members.
func (s *Service) restoreSecret(ctx context.Context, res proto.Message) {
	switch r := res.(type) {
	case *openwopv1.RegisterWebhookResponse:
		r.Secret = s.deps.Webhooks.Secret(auth.From(ctx).Tenant, r.GetWebhookId(), 1)
	case *hostv1.RotateWebhookSecretResponse:
		r.Secret = s.deps.Webhooks.Secret(auth.From(ctx).Tenant, r.GetWebhookId(), int(r.GetGeneration()))
	}
}
