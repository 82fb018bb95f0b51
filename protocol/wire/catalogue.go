package wire

import (
	"slices"
	"strings"
)

// catalogue lists the event types of the protocol by what they begin with (OpenWOP
// host contract Appendix B).
var catalogue = map[string][]string{
	"run":             {"started", "completed", "failed", "cancelled", "resuming", "paused", "resumed", "restored-from-snapshot", "dead_lettered"},
	"node":            {"started", "completed", "failed", "suspended", "suspend-failed", "resumed", "retried", "skipped", "cancelled", "dispatched"},
	"approval":        {"requested", "received", "granted", "rejected", "overridden"},
	"clarification":   {"requested", "resolved"},
	"interrupt":       {"requested", "resolved"},
	"channel":         {"written"},
	"artifact":        {"created"},
	"output":          {"chunk"},
	"variable":        {"changed"},
	"log":             {"appended"},
	"version":         {"pinned"},
	"workflow":        {"restored", "loopback-limit", "stalled"},
	"cap":             {"breached"},
	"lease":           {"acquired", "renewed", "lost", "handed-off"},
	"replay":          {"diverged", "divergedAtRefusal"},
	"provider":        {"usage"},
	"prompt":          {"composed"},
	"model":           {"capability.substituted", "capability.insufficient"},
	"envelope":        {"retry.attempted", "retry.exhausted", "refusal", "truncated", "nlToFormat.engaged", "recovery.applied"},
	"agent":           {"promptResolved", "reasoned", "reasoning.delta", "toolCalled", "toolReturned", "handoff", "decided", "verified", "invocation.started", "invocation.completed", "memory.consolidated"},
	"runOrchestrator": {"decided"},
	"conversation":    {"opened", "exchanged", "closed"},
	"memory":          {"compacted", "written"},
	"commitment":      {"fired"},
	"workspace":       {"updated"},
	"budget":          {"reserved", "consumed", "threshold.crossed", "exhausted"},
	"egress":          {"decided"},
	"authorization":   {"decided"},
	"eval":            {"started", "scored", "completed"},
	"deployment":      {"promoted", "rolled-back", "canary.adjusted", "state.changed"},
	"roster":          {"run.initiated"},
	"tool":            {"session.opened", "session.closed"},
	"trigger":         {"subscription.state.changed", "delivery.attempted"},
	"core":            {"workflowChain.event", "workflowChain.confidence-escalated"},
	"connector":       {"authorized", "auth_expired"},
	"proposal":        {"created", "activated"},
	"goal":            {"evaluated", "closed"},
	"import":          {"applied"},
	"voice":           {"speech_start", "transcript", "endpoint_candidate", "turn_commit", "synthesis_chunk", "barge_in", "cancelled"},
}

// reservedVendors never begin a vendor's event type (OpenWOP host contract §3.3).
var reservedVendors = []string{"openwop", "core", "community", "vendor", "private", "local"}

// maxEventType bounds the name of an event type.
const maxEventType = 128

// Known reports a type of the catalogue, or one that a vendor may have made: letters,
// digits, _ and - between dots, beginning with none of the catalogue's words.
func (t EventType) Known() bool {
	head, tail, dotted := strings.Cut(string(t), ".")
	if own, ours := catalogue[head]; ours {
		return slices.Contains(own, tail)
	}
	if !dotted || len(t) > maxEventType || head == "" || head[0] < 'a' || head[0] > 'z' || slices.Contains(reservedVendors, head) {
		return false
	}
	for part := range strings.SplitSeq(string(t), ".") {
		if part == "" || strings.ContainsFunc(part, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
		}) {
			return false
		}
	}
	return true
}
