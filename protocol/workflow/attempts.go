package workflow

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
)

// Bounds of what a node's settings may ask for: a longer wait is more likely a
// mistaken unit than a wish.
const (
	maxBackoff    = 24 * time.Hour
	maxMultiplier = 10
	maxTimeout    = 7 * 24 * time.Hour
)

// The waits before retries where a node says nothing about them.
const (
	defaultBackoff    = 500 * time.Millisecond
	defaultMaxBackoff = 30 * time.Second
	defaultMultiplier = 2
)

// retry are the members of settings.retry, an extension of this host's.
func (n *Node) retry() object { return members(members(n.Settings)["retry"]) }

// Backoff is the wait before an attempt, which is 1 for the first retry: backoffMs,
// multiplied by multiplier for each further one, and never more than maxBackoffMs. It
// has no jitter: the wait is part of the log, and one run's retries do not stampede.
func (n *Node) Backoff(attempt int) time.Duration {
	r := n.retry()
	first, longest, factor := float64(defaultBackoff), float64(defaultMaxBackoff), float64(defaultMultiplier)
	if ms, ok := r.integer("backoffMs"); ok && ms > 0 {
		first = float64(min(ms, maxBackoff.Milliseconds())) * float64(time.Millisecond)
		longest = max(longest, first)
	}
	if ms, ok := r.integer("maxBackoffMs"); ok && ms > 0 {
		longest = float64(min(ms, maxBackoff.Milliseconds())) * float64(time.Millisecond)
	}
	if f, ok := r.number("multiplier"); ok && f >= 1 {
		factor = min(f, maxMultiplier)
	}
	wait := min(first*math.Pow(factor, float64(max(attempt, 1)-1)), longest)
	return max(time.Duration(wait).Truncate(time.Millisecond), time.Millisecond)
}

// What a node does when its model has no capacity: settings.retry.onCapacity.
const (
	capacityWait = "wait"
	capacityFail = "fail"
)

// WaitsForCapacity reports whether the node waits, within its time, for a model that has no
// capacity. Otherwise that is a failure which uses up a retry.
func (n *Node) WaitsForCapacity() bool { return n.retry().text("onCapacity") != capacityFail }

// Timeout is how long an attempt of the node may take; 0: as long as the run.
func (n *Node) Timeout() time.Duration {
	ms, ok := members(n.Settings).integer("timeoutMs")
	if !ok || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, maxTimeout.Milliseconds())) * time.Millisecond
}

// UnknownOutcome says what happens to a node whose dispatcher stopped after the call may
// have been sent and before its result was recorded.
type UnknownOutcome string

// The policies for unknown outcomes. Without one the node type decides.
const (
	OutcomeByType UnknownOutcome = ""
	OutcomeRetry  UnknownOutcome = "retry"
	OutcomeFail   UnknownOutcome = "fail"
	OutcomeAsk    UnknownOutcome = "ask"
)

// OnUnknownOutcome is settings.onUnknownOutcome, an extension of this host.
func (n *Node) OnUnknownOutcome() UnknownOutcome {
	switch u := UnknownOutcome(members(n.Settings).text("onUnknownOutcome")); u {
	case OutcomeRetry, OutcomeFail, OutcomeAsk:
		return u
	default: // registered before the value was checked
		return OutcomeByType
	}
}

// checkAttempts finds what is wrong with a node's retries, its timeout and its policy for
// unknown outcomes.
func checkAttempts(n *Node, path string, found *problems) {
	s := members(n.Settings)
	inRange := func(o object, name, at, rule string, low, high int64, want string) {
		if o[name] == nil {
			return
		}
		if v, ok := o.integer(name); !ok || v < low || v > high {
			found.add(at+"/"+name, rule, want)
		}
	}
	inRange(s, "maxRetries", path, RuleMaxRetries, 0, math.MaxInt64, "want an integer of at least 0")
	inRange(s, "timeoutMs", path, RuleTimeout, 1, maxTimeout.Milliseconds(), "want milliseconds, an integer from 1 to 604800000; without a limit leave the member out")
	if s["onUnknownOutcome"] != nil && n.OnUnknownOutcome() == OutcomeByType {
		found.add(path+"/onUnknownOutcome", RuleUnknownOutcome, `want "retry", "fail" or "ask"; without it the node type decides`)
	}
	if s["retry"] == nil {
		return
	}
	at, r := path+"/retry", n.retry()
	if strictjson.KindOf(s["retry"]) != "an object" {
		found.add(at, RuleRetry, "want an object with maxRetries, backoffMs, multiplier, maxBackoffMs and onCapacity, each optional")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if !slices.Contains([]string{"maxRetries", "backoffMs", "multiplier", "maxBackoffMs", "onCapacity"}, name) {
			found.add(at+pointer(name), RuleRetry, "no such member; there are maxRetries, backoffMs, multiplier, maxBackoffMs and onCapacity")
		}
	}
	inRange(r, "maxRetries", at, RuleRetry, 0, math.MaxInt64, "want an integer of at least 0")
	if r["maxRetries"] != nil && s["maxRetries"] != nil {
		found.add(at+"/maxRetries", RuleExclusive, "settings.maxRetries says it already; keep one")
	}
	inRange(r, "backoffMs", at, RuleRetry, 1, maxBackoff.Milliseconds(), "want milliseconds, an integer from 1 to 86400000")
	inRange(r, "maxBackoffMs", at, RuleRetry, 1, maxBackoff.Milliseconds(), "want milliseconds, an integer from 1 to 86400000")
	if v := r.text("onCapacity"); r["onCapacity"] != nil && v != capacityWait && v != capacityFail {
		found.add(at+"/onCapacity", RuleRetry, "want wait or fail")
	}
	if f, ok := r.number("multiplier"); r["multiplier"] != nil && (!ok || f < 1 || f > maxMultiplier) {
		found.add(at+"/multiplier", RuleRetry, "want a number from 1 to 10; 1 waits as long each time")
	}
	first, hasFirst := r.integer("backoffMs")
	if longest, ok := r.integer("maxBackoffMs"); ok && hasFirst && longest < first {
		found.add(at+"/maxBackoffMs", RuleRetry, "want at least backoffMs, the first wait")
	}
}

// number is the number member; ok is false when it is none.
func (o object) number(name string) (f float64, ok bool) {
	raw := o[name]
	if len(raw) == 0 || strictjson.KindOf(raw) != "a number" || json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return f, true
}
