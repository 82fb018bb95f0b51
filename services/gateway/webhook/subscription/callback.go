package subscription

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// NewCallback returns the subscription for callback URLs at an origin (OpenWOP host contract
// §6.5). All runs of the tenant with a callback URL there share it, with one breaker and one
// secret. Its id derives from the origin, so all replicas create the same one.
func NewCallback(tenant, origin, createdAt string) Subscription {
	sum := sha256.Sum256([]byte(origin))
	return Subscription{
		Tenant: tenant, ID: "cb_" + hex.EncodeToString(sum[:13]), URL: origin, Events: slices.Clone(questionEvents),
		CreatedAt: createdAt, Callback: true,
	}
}

// questionEvents carry a question: when it is asked, and at each escalation
// level.
var questionEvents = []wire.EventType{wire.EventInterruptRequested, wire.EventApprovalEscalated}

// FirstGeneration returns the first generation of a callback's secret. A deleted callback
// gets the same id when a run names its origin again, but must not get an old secret.
func FirstGeneration(now time.Time) int { return int(now.Unix() / 60) }

// Origin returns scheme, host and port of a URL; empty if it has no host.
func Origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}
