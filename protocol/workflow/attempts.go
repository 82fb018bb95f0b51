package workflow

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// Limits of a node's settings. A longer wait is more likely a wrong unit than intended.
const (
	maxBackoff    = 24 * time.Hour
	maxMultiplier = 10
	maxTimeout    = 7 * 24 * time.Hour
)

// The default waits before retries.
const (
	defaultBackoff    = 500 * time.Millisecond
	defaultMaxBackoff = 30 * time.Second
	defaultMultiplier = 2
)

// retry returns the members of settings.retry, an extension of this host.
func (n *Node) retry() object { return members(members(n.Settings)["retry"]) }

// Backoff returns the wait before an attempt, 1 being the first retry: backoffMs, multiplied by
// multiplier for each further retry, at most maxBackoffMs. It has no jitter, because the wait is
// part of the log and the retries of one run do not stampede.
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

// The actions for a model without capacity: settings.retry.onCapacity.
const (
	capacityWait = "wait"
	capacityFail = "fail"
)

// WaitsForCapacity reports whether the node waits, within its time limit, for a model without
// capacity. Otherwise that is a failure which uses up a retry.
func (n *Node) WaitsForCapacity() bool { return n.retry().text("onCapacity") != capacityFail }

// Timeout returns the time limit of an attempt; 0 means the run's.
func (n *Node) Timeout() time.Duration {
	ms, ok := members(n.Settings).integer("timeoutMs")
	if !ok || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, maxTimeout.Milliseconds())) * time.Millisecond
}

// UnknownOutcome determines what happens to a node whose dispatcher stopped after the call may have
// been sent and before its result was recorded.
type UnknownOutcome string

// The policies for unknown outcomes. By default the node type decides.
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

// checkAttempts checks a node's retries, timeout and policy for unknown outcomes.
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
	known := []string{"maxRetries", "backoffMs", "multiplier", "maxBackoffMs", "onCapacity"}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if !slices.Contains(known, name) {
			found.add(at+pointer(name), RuleRetry, schema.UnknownMember(name, known, r))
		}
	}
	inRange(r, "maxRetries", at, RuleRetry, 0, math.MaxInt64, "want an integer of at least 0")
	if r["maxRetries"] != nil && s["maxRetries"] != nil {
		found.add(at+"/maxRetries", RuleExclusive, "is already set by settings.maxRetries; keep one")
	}
	inRange(r, "backoffMs", at, RuleRetry, 1, maxBackoff.Milliseconds(), "want milliseconds, an integer from 1 to 86400000")
	inRange(r, "maxBackoffMs", at, RuleRetry, 1, maxBackoff.Milliseconds(), "want milliseconds, an integer from 1 to 86400000")
	if v := r.text("onCapacity"); r["onCapacity"] != nil && v != capacityWait && v != capacityFail {
		found.add(at+"/onCapacity", RuleRetry, "want wait or fail")
	}
	if f, ok := r.number("multiplier"); r["multiplier"] != nil && (!ok || f < 1 || f > maxMultiplier) {
		found.add(at+"/multiplier", RuleRetry, "want a number from 1 to 10; 1 keeps the wait constant")
	}
	first, hasFirst := r.integer("backoffMs")
	if longest, ok := r.integer("maxBackoffMs"); ok && hasFirst && longest < first {
		found.add(at+"/maxBackoffMs", RuleRetry, "want at least backoffMs, the first wait")
	}
}

// number returns a number member; ok is false if it is not a number.
func (o object) number(name string) (f float64, ok bool) {
	raw := o[name]
	if len(raw) == 0 || strictjson.KindOf(raw) != "a number" || json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return f, true
}
