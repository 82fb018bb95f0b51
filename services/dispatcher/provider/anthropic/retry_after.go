package anthropic

import (
	"net/http"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// limits are the vendor's rate limits, by the middle of their headers' names.
var limits = []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// maxWait bounds what is believed of a limit's reset.
const maxWait = 24 * time.Hour

// retryAfter is how long the vendor asks to wait: its Retry-After, or else until
// the last of the limits that are used up is full again, by the server's own clock.
func retryAfter(h http.Header) time.Duration {
	if d := outbound.RetryAfter(h); d > 0 {
		return d
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	var wait time.Duration
	for _, limit := range limits {
		if h.Get("Anthropic-Ratelimit-"+limit+"-Remaining") != "0" {
			continue
		}
		if reset, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+limit+"-Reset")); err == nil {
			wait = max(wait, reset.Sub(now))
		}
	}
	return min(wait, maxWait)
}
