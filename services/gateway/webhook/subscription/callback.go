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

// NewCallback is the subscription by which runs of a tenant ask servers at an origin
// (OpenWOP host contract §6.5). All of them share it, and with it one breaker and one
// secret. There is one for an origin, whichever replica makes it: the id follows from it.
func NewCallback(tenant, origin, createdAt string) Subscription {
	sum := sha256.Sum256([]byte(origin))
	return Subscription{
		Tenant: tenant, ID: "cb_" + hex.EncodeToString(sum[:13]), URL: origin, Events: slices.Clone(asking),
		CreatedAt: createdAt, Callback: true,
	}
}

// asking are the events by which a run asks: once, and again at each level that its
// question comes to.
var asking = []wire.EventType{wire.EventInterruptRequested, wire.EventApprovalEscalated}

// FirstGeneration is that of the secret of a callback: its id comes back when it was
// deleted and a run names the origin again, an old secret must not.
func FirstGeneration(now time.Time) int { return int(now.Unix() / 60) }

// Origin is the scheme, host and port of a URL that may be called; empty: it is none.
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
