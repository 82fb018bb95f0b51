// Package deliver sends what the outbox holds: signed, in the order of each run, again
// after a failure, until it is taken or given up.
package deliver

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
	// HeaderPrevious is this host's own: the signature made with the secret before the
	// last rotation, while both are good.
	HeaderPrevious = "Waybill-Previous-Signature"

	// HeaderKey names a question to its receiver: it is the same for each attempt.
	HeaderKey = "Idempotency-Key"

	userAgent = "openwop-webhook-dispatcher/" + version.Version
)

// Algorithm is how deliveries are signed.
const Algorithm = "v1"

// Sign is the signature of a body at an instant. The key is the secret as it is
// written, not the bytes that its digits stand for.
func Sign(secret string, unix int64, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write(strconv.AppendInt(nil, unix, 10))
	m.Write([]byte{'.'})
	m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// headers are those of one attempt.
func headers(e *subscription.Entry, secrets *subscription.Secrets, ev *event, now time.Time) (http.Header, error) {
	secret, err := secrets.Of(&e.Subscription, e.State.Key)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	set := func(name, value string) { h[name] = []string{value} } // spelled as the protocol does
	set("Content-Type", "application/json")
	set("User-Agent", userAgent)
	set(HeaderID, e.ID)
	set(HeaderType, string(ev.kind))
	set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	set(HeaderAlgorithm, Algorithm)
	set(HeaderSignature, Sign(secret, now.Unix(), ev.body))
	if previous, ok := e.State.Overlap(now); ok {
		if secret, err := secrets.Of(&e.Subscription, previous); err == nil { // else the new one has to do
			set(HeaderPrevious, Sign(secret, now.Unix(), ev.body))
		}
	}
	if ev.key != "" {
		set(HeaderKey, ev.key)
	}
	if ev.trace != "" {
		set("Traceparent", ev.trace)
	}
	return h, nil
}

// event is what is delivered. Of a webhook's every attempt sends the same bytes; a
// question's token is made for each.
type event struct {
	to       string // the URL
	key      string // a question's; empty for a webhook's
	kind     wire.EventType
	sequence int
	body     []byte
	trace    string
}

// body renders {runId, workspaceId?, type, sequence, event}. The event is what the log
// holds, byte for byte.
func body(rec *wire.RunRecord, kind wire.EventType, sequence int, raw []byte) []byte {
	b := make([]byte, 0, len(raw)+256)
	b = append(b, `{"runId":`...)
	b = wire.AppendString(b, rec.RunID)
	if rec.Owner.Workspace != "" {
		b = append(b, `,"workspaceId":`...)
		b = wire.AppendString(b, rec.Owner.Workspace)
	}
	b = append(b, `,"type":`...)
	b = wire.AppendString(b, string(kind))
	b = append(b, `,"sequence":`...)
	b = strconv.AppendInt(b, int64(sequence), 10)
	b = append(b, `,"event":`...)
	b = append(b, raw...)
	return append(b, '}')
}
