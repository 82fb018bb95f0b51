package outbound

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter limits the wait accepted from a server.
const maxRetryAfter = 24 * time.Hour

// Wait returns the wait that a server requests; 0 for none: that of Retry-After, else of the rate limits that
// refused the call, else of the error's document.
func (e *ServerError) Wait() time.Duration {
	if wait := RetryAfter(e.Header); wait > 0 {
		return wait
	}
	if wait := limitReset(e.Header); wait > 0 && IsOverloaded(e.Status) {
		return wait
	}
	return e.Body.wait(e.Header)
}

// RetryAfter reads Retry-After: seconds, also with their unit, or a date, which is compared with the server's
// own Date, if there is one, so that clocks need not agree. It returns 0 without a usable value.
//
// Retry-After-Ms, sent by some vendors, is more precise and takes precedence.
func RetryAfter(h http.Header) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if ms, err := strconv.ParseFloat(h.Get(name), 64); err == nil && ms > 0 && !math.IsInf(ms, 0) {
			return time.Duration(min(ms, float64(maxRetryAfter.Milliseconds())) * float64(time.Millisecond))
		}
	}
	value := h.Get("Retry-After")
	wait := timeUntil(value, h) // a date has a comma
	if wait == 0 {
		for each := range strings.SplitSeq(value, ",") { // of several servers
			wait = max(wait, timeUntil(each, h))
		}
	}
	return wait
}

// Numbers from firstEpoch are seconds since 1970, from firstEpochMs milliseconds.
const (
	firstEpoch   = 1e9
	firstEpochMs = 1e11
)

// timeUntil reads a time to wait: a number of seconds, a duration such as 6m0s, or a point in time.
func timeUntil(value string, h http.Header) time.Duration {
	value = strings.TrimSpace(value)
	now, noDate := http.ParseTime(h.Get("Date"))
	if noDate != nil {
		now = time.Now()
	}
	until := func(t time.Time) time.Duration {
		return min(max(t.Sub(now), 0), maxRetryAfter)
	}
	if s, err := strconv.ParseFloat(value, 64); err == nil && !math.IsNaN(s) {
		switch {
		case s >= firstEpochMs && s < firstEpochMs*firstEpoch:
			return until(time.UnixMilli(int64(s)))
		case s >= firstEpoch && s < firstEpochMs:
			return until(time.Unix(int64(s), 0))
		case s >= 0 && !math.IsInf(s, 0):
			return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
		}
		return 0
	}
	if wait, err := time.ParseDuration(value); err == nil {
		return min(max(wait, 0), maxRetryAfter)
	}
	for _, layout := range []string{time.RFC3339, http.TimeFormat, time.RFC850, time.ANSIC} {
		if t, err := time.Parse(layout, value); err == nil {
			return until(t)
		}
	}
	return 0
}

// limitReset returns the time until the last exhausted rate limit resets. Vendors name the limit before
// or after the word reset, or have only one.
func limitReset(h http.Header) (wait time.Duration) {
	for name := range h {
		lower := strings.ToLower(name)
		if !strings.Contains(strings.ReplaceAll(lower, "-", ""), "ratelimit") {
			continue
		}
		for _, word := range []string{"reset", "timeremaining"} {
			if !strings.Contains(lower, word) {
				continue
			}
			remaining := h.Get(strings.Replace(lower, word, "remaining", 1))
			status := h.Get(strings.Replace(lower, word, "status", 1)) // of Anthropic's subscriptions
			left, err := strconv.ParseFloat(remaining, 64)
			if exhausted := err == nil && left <= 0; exhausted || remaining == "" && !strings.HasPrefix(status, "allowed") {
				wait = max(wait, timeUntil(h.Get(name), h))
			}
		}
	}
	for _, one := range h.Values("Ratelimit") {
		for _, m := range limitField.FindAllStringSubmatch(one, -1) {
			wait = max(wait, timeUntil(m[1], h))
		}
	}
	return wait
}

// limitField matches an exhausted limit of the header RateLimit, in both drafts of the IETF.
var limitField = regexp.MustCompile(`(?:\br=0|\bremaining=0)\b[^,]*?[;,]\s*(?:t|reset)=(\d+)`)

// wait returns the wait that the error's document requests, in a member or in words; 0 for none. Gateways
// pass on the words of a server, and not its headers. h has the server's Date.
func (e ErrorBody) wait(h http.Header) time.Duration {
	for _, value := range []string{e.RetryDelay, e.After, e.Reset} {
		if wait := timeUntil(value, h); value != "" && wait > 0 {
			return wait
		}
	}
	words := waitInWords.FindStringSubmatch(strings.ToLower(e.Message))
	if words == nil {
		return 0
	}
	var wait time.Duration
	for _, part := range timeInWords.FindAllStringSubmatch(words[1], -1) {
		unit := part[2][:1]
		if strings.HasPrefix(part[2], "ms") || strings.HasPrefix(part[2], "milli") {
			unit = "ms"
		}
		one, err := time.ParseDuration(part[1] + unit)
		if err != nil {
			return 0
		}
		wait += min(one, maxRetryAfter)
	}
	return min(wait, maxRetryAfter)
}

// waitInWords matches a time to wait: numbers with their units, such as 6m0s or 2 minutes and 5 seconds.
var (
	waitInWords = regexp.MustCompile(`(?:again|retry|wait|reset|resets|replenished)(?: in| after| for)?:? ((?:` + aTime + `(?:,? (?:and )?)?)*` + aTime + `\b)`)
	timeInWords = regexp.MustCompile(aTime)
)

// aTime is a number with its unit.
const aTime = `(\d+(?:\.\d+)?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h)`
