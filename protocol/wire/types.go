package wire

// EventType is the discriminator of a run event (closed catalogue of the
// protocol; OpenWOP host contract Appendix B).
type EventType string

// The event types this host emits.
const (
	EventRunStarted   EventType = "run.started"
	EventRunCompleted EventType = "run.completed"
	EventRunFailed    EventType = "run.failed"
	EventRunCancelled EventType = "run.cancelled"
	EventRunPaused    EventType = "run.paused"
	EventRunResumed   EventType = "run.resumed"

	EventNodeStarted   EventType = "node.started"
	EventNodeCompleted EventType = "node.completed"
	EventNodeFailed    EventType = "node.failed"
	EventNodeRetried   EventType = "node.retried"
	EventNodeSkipped   EventType = "node.skipped"
	EventNodeCancelled EventType = "node.cancelled"
	EventNodeSuspended EventType = "node.suspended"
	EventNodeResumed   EventType = "node.resumed"
	// EventNodeDispatched: a node started a child run.
	EventNodeDispatched EventType = "node.dispatched"

	EventInterruptRequested EventType = "interrupt.requested"
	EventInterruptResolved  EventType = "interrupt.resolved"
	EventApprovalRequested  EventType = "approval.requested"
	EventApprovalReceived   EventType = "approval.received"
	EventApprovalGranted    EventType = "approval.granted"
	EventApprovalRejected   EventType = "approval.rejected"
	EventApprovalOverridden EventType = "approval.overridden"
	// EventApprovalEscalated is specific to this host: an approval reached its next level.
	EventApprovalEscalated EventType = "waybill.approval.escalated"

	EventClarificationRequested EventType = "clarification.requested"
	EventClarificationResolved  EventType = "clarification.resolved"

	EventArtifactCreated EventType = "artifact.created"
	EventOutputChunk     EventType = "output.chunk"
	EventVariableChanged EventType = "variable.changed"
	EventChannelWritten  EventType = "channel.written"
	EventVersionPinned   EventType = "version.pinned"
	EventLogAppended     EventType = "log.appended"
	EventCapBreached     EventType = "cap.breached"
	EventProviderUsage   EventType = "provider.usage"
	EventPromptComposed  EventType = "prompt.composed"

	EventReplayDiverged EventType = "replay.diverged"
	EventLoopbackLimit  EventType = "workflow.loopback-limit"

	EventAgentReasoningDelta EventType = "agent.reasoning.delta"
	EventAgentReasoned       EventType = "agent.reasoned"
	EventAgentPromptResolved EventType = "agent.promptResolved"

	EventModelSubstituted  EventType = "model.capability.substituted"
	EventModelInsufficient EventType = "model.capability.insufficient"

	EventEnvelopeRetryAttempted EventType = "envelope.retry.attempted"
	EventEnvelopeRetryExhausted EventType = "envelope.retry.exhausted"
	EventEnvelopeRefusal        EventType = "envelope.refusal"
	EventEnvelopeTruncated      EventType = "envelope.truncated"
	EventEnvelopeNLToFormat     EventType = "envelope.nlToFormat.engaged"
	EventEnvelopeRecovery       EventType = "envelope.recovery.applied"
)

// Terminal reports whether the event ends its run: it is the last of the log.
func (t EventType) Terminal() bool {
	return t == EventRunCompleted || t == EventRunFailed || t == EventRunCancelled
}

// Trust is the trust in the source of content. The empty value means trusted (OpenWOP envelope
// contract §12).
type Trust string

// The two levels of trust. Trust never rises.
const (
	Trusted   Trust = "trusted"
	Untrusted Trust = "untrusted"
)

// Meet returns the trust of content derived from both: untrusted if either is.
func (t Trust) Meet(o Trust) Trust {
	if t == Untrusted || o == Untrusted {
		return Untrusted
	}
	return Trusted
}

// Status is the state of a run in a snapshot (OpenWOP host contract §3.1).
type Status string

// The ten statuses of a run.
const (
	StatusPending         Status = "pending"
	StatusRunning         Status = "running"
	StatusPaused          Status = "paused"
	StatusWaitingApproval Status = "waiting-approval"
	StatusWaitingInput    Status = "waiting-input"
	StatusWaitingExternal Status = "waiting-external"
	StatusCancelling      Status = "cancelling"
	StatusCompleted       Status = "completed"
	StatusFailed          Status = "failed"
	StatusCancelled       Status = "cancelled"
)

// Terminal reports whether no event can follow.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Suspended reports whether the run waits for an answer.
func (s Status) Suspended() bool {
	return s == StatusWaitingApproval || s == StatusWaitingInput || s == StatusWaitingExternal
}

// Waiting reports whether the run waits for outside input.
func (s Status) Waiting() bool {
	return s == StatusPaused || s.Suspended()
}

// DrainPolicy determines what happens to running nodes when their run is paused.
type DrainPolicy string

// The two policies of draining (OpenWOP host contract §2.7).
const (
	DrainNot     DrainPolicy = "immediate"
	DrainCurrent DrainPolicy = "drain-current-node"
)

// Statuses lists every status, for filters and messages.
func Statuses() []Status {
	return []Status{
		StatusPending, StatusRunning, StatusPaused, StatusWaitingApproval, StatusWaitingInput,
		StatusWaitingExternal, StatusCancelling, StatusCompleted, StatusFailed, StatusCancelled,
	}
}

// Version numbers of this host (OpenWOP host contract §1.3, §1.4).
const (
	ProtocolVersion       = "1.1"
	EngineVersion         = 1
	EventLogSchemaVersion = 2
	eventSchemaVersion    = 1
)
