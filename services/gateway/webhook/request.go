package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Names of the headers of a delivery (OpenWOP host contract §10.5).
const (
	HeaderID        = "X-openwop-Webhook-Id"
	HeaderType      = "X-openwop-Event-Type"
	HeaderTimestamp = "X-openwop-Timestamp"
	HeaderSignature = "X-openwop-Signature"
	HeaderAlgorithm = "X-openwop-Signature-Algorithm"
	// HeaderPrevious is this host's own. It holds the signature by the previous secret,
	// while both are valid.
	HeaderPrevious = "Waybill-Previous-Signature"

	// HeaderKey identifies a question to its receiver. It is the same for each attempt.
	HeaderKey = "Idempotency-Key"

	userAgent = "openwop-webhook-dispatcher/" + version.Version
)

// Algorithm names the signature scheme.
const Algorithm = "v1"

// Sign signs a body at a Unix time. The key is the secret's hex text, not the bytes it
// encodes.
func Sign(secret string, unix int64, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(strconv.AppendInt(nil, unix, 10))
	m.Write([]byte{'.'})
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// headers returns the headers of one attempt.
func headers(e *subscription.Entry, secrets *subscription.Secrets, ev *event, now time.Time) (http.Header, error) {
	secret, err := secrets.Of(&e.Subscription, e.State.Key)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	set := func(name, value string) { h[name] = []string{value} } // keeps the protocol's spelling
	set("Content-Type", "application/json")
	set("User-Agent", userAgent)
	set(HeaderID, e.ID)
	set(HeaderType, string(ev.kind))
	set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	set(HeaderAlgorithm, Algorithm)
	set(HeaderSignature, Sign(secret, now.Unix(), ev.body))
	valid := []string{secret}
	if previous, ok := e.State.Overlap(now); ok {
		if secret, err := secrets.Of(&e.Subscription, previous); err == nil { // otherwise only the new one signs
			set(HeaderPrevious, Sign(secret, now.Unix(), ev.body))
			valid = append(valid, secret)
		}
	}
	id := MessageID(e.ID, ev.runID, ev.sequence)
	set(HeaderStandardID, id)
	set(HeaderStandardTimestamp, strconv.FormatInt(now.Unix(), 10))
	set(HeaderStandardSignature, SignStandard(valid, id, now.Unix(), ev.body))
	if ev.key != "" {
		set(HeaderKey, ev.key)
	}
	if ev.trace != "" {
		set("Traceparent", ev.trace)
	}
	return h, nil
}

// event is one delivery. Every attempt for a webhook sends the same bytes; each attempt for
// a callback has a new token.
type event struct {
	to       string // the URL
	key      string // of a question; empty for webhooks
	kind     wire.EventType
	runID    string
	sequence int
	body     []byte
	trace    string
}

// body renders {runId, workspaceId?, type, sequence, event}. The event is byte for byte the
// one in the log.
func body(rec *wire.RunRecord, kind wire.EventType, sequence int, raw []byte) []byte {
	var w wire.ObjectWriter
	w.String("runId", rec.RunID)
	w.NonEmpty("workspaceId", rec.Owner.Workspace)
	w.String("type", string(kind))
	w.Int("sequence", sequence)
	w.Raw("event", raw)
	return w.Close()
}
