package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

const webhookFeature = "a list of webhooks"

// Webhook is a webhook, or the callbacks to one server, without its secret.
type Webhook struct {
	WebhookID string   `json:"webhookId"`
	URL       string   `json:"url"`
	Events    []string `json:"events"`
	Tags      []string `json:"tags"`
	CreatedAt string   `json:"createdAt"`
	// Status is active, open (nothing is sent until OpenUntil), half-open or failed.
	Status              string `json:"status"`
	OpenUntil           string `json:"openUntil"`
	ConsecutiveFailures int    `json:"consecutiveFailures"`
	RecentFailures      int    `json:"recentFailures"`
	SecretFingerprint   string `json:"secretFingerprint"`
	// DroppedEvents were not queued, because the webhook had too many runs with pending deliveries.
	DroppedEvents  int64  `json:"droppedEvents"`
	FirstDroppedAt string `json:"firstDroppedAt"`
	LastDroppedAt  string `json:"lastDroppedAt"`
}

// WebhookPage is one page of webhooks, by id.
type WebhookPage struct {
	Webhooks   []Webhook       `json:"webhooks"`
	NextCursor string          `json:"nextCursor"`
	Doc        json.RawMessage `json:"-"`
}

// Webhooks reads a page of webhooks.
func (c *Client) Webhooks(ctx context.Context, limit int, cursor string) (*WebhookPage, error) {
	out := &WebhookPage{}
	query := values("limit", number(limit), "cursor", cursor)
	a, err := c.list(ctx, request{path: "/v1/webhooks", query: query, feature: webhookFeature}, "webhooks", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// Delivery is an event that was not delivered.
type Delivery struct {
	RunID    string `json:"runId"`
	Sequence int    `json:"sequence"`
	Status   string `json:"status"`
	Attempts int    `json:"attempts"`
	Type     string `json:"type"`
	Reason   string `json:"reason"`
	FailedAt string `json:"failedAt"`
	// NextAttemptAt is empty if the event is being sent.
	NextAttemptAt string `json:"nextAttemptAt"`
}

// DeliveryPage is one page of deliveries, by run and sequence.
type DeliveryPage struct {
	Deliveries []Delivery      `json:"deliveries"`
	NextCursor string          `json:"nextCursor"`
	Doc        json.RawMessage `json:"-"`
}

// Deliveries reads a page of the deliveries of a webhook whose status is failed or pending.
func (c *Client) Deliveries(ctx context.Context, webhookID, status string, limit int, cursor string) (*DeliveryPage, error) {
	out := &DeliveryPage{}
	query := values("status", status, "limit", number(limit), "cursor", cursor)
	a, err := c.list(ctx, request{path: webhookPath(webhookID) + "/deliveries", query: query, feature: "a list of deliveries"}, "deliveries", out)
	if err != nil {
		return nil, err
	}
	out.Doc = a.Body
	return out, nil
}

// NewWebhook describes a webhook to register.
type NewWebhook struct {
	URL    string   `json:"url"`
	Events []string `json:"events"`
	// Tags select the runs with one of them; empty selects all.
	Tags []string `json:"tags,omitempty"`
}

// RegisterWebhook registers a webhook. The answer has its secret, which no other answer has.
func (c *Client) RegisterWebhook(ctx context.Context, w NewWebhook) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodPost, path: "/v1/webhooks", feature: "webhooks", body: w})
}

// RotateWebhook creates a new secret, which only this answer has. The previous one signs for some more
// seconds; a negative overlap uses the host's default.
func (c *Client) RotateWebhook(ctx context.Context, webhookID string, overlapSeconds int) (*Answer, error) {
	body := map[string]any{}
	if overlapSeconds >= 0 {
		body["overlapSeconds"] = overlapSeconds
	}
	return c.write(ctx, request{path: webhookPath(webhookID) + ":rotate", feature: "the rotation of secrets"}, body)
}

// Redelivery is the outcome of another attempt of a delivery.
type Redelivery struct {
	Delivered bool `json:"delivered"`
	// Reason is why it was not delivered.
	Reason string `json:"reason"`
}

// Redeliver sends an event that was given up once more.
func (c *Client) Redeliver(ctx context.Context, webhookID, runID string, sequence int) (*Redelivery, error) {
	out := &Redelivery{}
	body := map[string]any{"runId": runID, "sequence": sequence}
	r := request{method: http.MethodPost, path: webhookPath(webhookID) + ":redeliver", body: body}
	if _, err := c.into(ctx, r, out); err != nil {
		if _, lacks := lacksRoute(r, err); lacks {
			if _, missing := c.Deliveries(ctx, webhookID, "failed", 1, ""); missing == nil {
				return nil, err // the delivery is missing, not the route
			}
		}
		r.feature = "the redelivery of events"
		return nil, c.offered(ctx, r, err)
	}
	return out, nil
}

// DeleteWebhook deletes a webhook with its pending deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, webhookID string) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodDelete, path: webhookPath(webhookID), feature: "webhooks"})
}

func webhookPath(id string) string { return "/v1/webhooks/" + url.PathEscape(id) }
