package wire

import (
	"maps"
	"slices"
	"strings"
)

// Group is the subject of an event, for filters.
type Group string

// The groups. Event types of vendors have GroupOther.
const (
	GroupRun       Group = "run"
	GroupNode      Group = "node"
	GroupInterrupt Group = "interrupt"
	GroupEnvelope  Group = "envelope"
	GroupModel     Group = "model"
	GroupTool      Group = "tool"
	GroupMemory    Group = "memory"
	GroupArtifact  Group = "artifact"
	GroupLog       Group = "log"
	GroupOther     Group = "other"
)

// TypeRow is the description of an event type in the docs, the console and `waybill explain`.
type TypeRow struct {
	Group   Group
	Meaning string
}

// catalogue holds the event types of the protocol (OpenWOP host contract Appendix B).
var catalogue = map[EventType]TypeRow{
	// run
	"run.started":                {GroupRun, "The run started; the payload has its workflow and inputs."},
	"run.completed":              {GroupRun, "The run completed; the payload has its outputs."},
	"run.failed":                 {GroupRun, "The run failed; error.code identifies the error."},
	"run.cancelled":              {GroupRun, "The run was cancelled, by a caller or with its parent."},
	"run.resuming":               {GroupRun, "A resume was requested; work continues."},
	"run.paused":                 {GroupRun, "The run was paused; no node starts until it is resumed."},
	"run.resumed":                {GroupRun, "The paused run continues."},
	"run.restored-from-snapshot": {GroupRun, "The run's state was rebuilt from a snapshot."},
	"run.dead_lettered":          {GroupRun, "The run exhausted its retries and needs an operator."},
	"workflow.restored":          {GroupRun, "A restarted host restored the run from its log."},
	"workflow.stalled":           {GroupRun, "The run made no progress for longer than the limit."},
	"version.pinned":             {GroupRun, "The run was pinned to one version of a change."},
	"replay.diverged":            {GroupRun, "A replay produced a different result than its source run."},
	"replay.divergedAtRefusal":   {GroupRun, "A model refusal occurred in only one of the replay and its source run."},
	"lease.acquired":             {GroupRun, "A host acquired the lease of the run."},
	"lease.renewed":              {GroupRun, "The host renewed its lease of the run."},
	"lease.lost":                 {GroupRun, "The lease of the run expired or was released."},
	"lease.handed-off":           {GroupRun, "The lease of the run moved to another host."},

	// node
	"node.started":                            {GroupNode, "An attempt of a node started; attempts count from 0."},
	"node.completed":                          {GroupNode, "The node completed; the payload has its outputs."},
	"node.failed":                             {GroupNode, "The node failed after all its retries."},
	"node.suspended":                          {GroupNode, "The node waits for an external answer."},
	"node.suspend-failed":                     {GroupNode, "The node could not be suspended."},
	"node.resumed":                            {GroupNode, "The node continues with the received answer."},
	"node.retried":                            {GroupNode, "An attempt failed, or a branch starts within it, and another one follows."},
	"node.skipped":                            {GroupNode, "The node is not executed: no edge to it matches, or its gate is closed."},
	"node.cancelled":                          {GroupNode, "The node was cancelled before it ended."},
	"node.dispatched":                         {GroupNode, "The node started a child run."},
	"variable.changed":                        {GroupNode, "A variable of the run has a new value."},
	"channel.written":                         {GroupNode, "A value was written to a channel, and merged by its reducer."},
	"workflow.loopback-limit":                 {GroupNode, "A loop reached its limit of iterations."},
	"cap.breached":                            {GroupNode, "A limit was exceeded; the payload has the limit and the observed value."},
	"runOrchestrator.decided":                 {GroupNode, "A supervisor selected the next worker, or ended the work."},
	"core.workflowChain.event":                {GroupNode, "Work passed from a planner to a worker, or back."},
	"core.workflowChain.confidence-escalated": {GroupNode, "A supervisor's confidence was too low, and a person has to decide."},

	// interrupt
	"interrupt.requested":     {GroupInterrupt, "The run waits for an external answer: an approval, a clarification or an event."},
	"interrupt.resolved":      {GroupInterrupt, "The interrupt was answered, or its deadline passed."},
	"approval.requested":      {GroupInterrupt, "The run requested an approval."},
	"approval.received":       {GroupInterrupt, "One vote or decision on an approval was recorded."},
	"approval.granted":        {GroupInterrupt, "An approval gate was granted."},
	"approval.rejected":       {GroupInterrupt, "An approval gate was rejected."},
	"approval.overridden":     {GroupInterrupt, "An authorised caller overrode an approval gate and gave a reason."},
	"clarification.requested": {GroupInterrupt, "The model asks questions that a person has to answer."},
	"clarification.resolved":  {GroupInterrupt, "The questions were answered."},
	"conversation.opened":     {GroupInterrupt, "A conversation of several turns started."},
	"conversation.exchanged":  {GroupInterrupt, "One turn of the conversation is complete."},
	"conversation.closed":     {GroupInterrupt, "The conversation ended."},
	"authorization.decided":   {GroupInterrupt, "An action was authorised or denied."},
	"proposal.created":        {GroupInterrupt, "The host created a proposal for a person to review."},
	"proposal.activated":      {GroupInterrupt, "A reviewed proposal was activated."},

	// envelope
	"envelope.retry.attempted":    {GroupEnvelope, "An emission was invalid, and the model is called again; reason has the cause."},
	"envelope.retry.exhausted":    {GroupEnvelope, "No attempt produced a valid envelope; finalReason has the cause of the last failure."},
	"envelope.refusal":            {GroupEnvelope, "The model refused; the call is not retried."},
	"envelope.truncated":          {GroupEnvelope, "The model's answer was truncated before the envelope was complete."},
	"envelope.nlToFormat.engaged": {GroupEnvelope, "All attempts failed, and the last answer was prose: one more call asks for it as JSON."},
	"envelope.recovery.applied":   {GroupEnvelope, "The JSON of an answer was found in other text, or repaired, before validation; path says how."},

	// model
	"provider.usage":                {GroupModel, "A model was called; the payload has the tokens, and the cost if it is known."},
	"model.capability.substituted":  {GroupModel, "The model lacks a capability, and the node's fallback model was used."},
	"model.capability.insufficient": {GroupModel, "The model lacks a capability and no fallback exists; the node is not executed."},
	"output.chunk":                  {GroupModel, "A chunk of a model's streamed answer."},
	"prompt.composed":               {GroupModel, "The prompt of a model call was composed."},
	"agent.promptResolved":          {GroupModel, "A prompt reference was resolved; the payload has each layer that contributed."},
	"agent.reasoned":                {GroupModel, "A model or agent returned its reasoning; it does not affect routing."},
	"agent.reasoning.delta":         {GroupModel, "A chunk of streamed reasoning."},
	"agent.decided":                 {GroupModel, "An agent made a decision."},
	"agent.verified":                {GroupModel, "A critic judged a result before it is used."},
	"agent.handoff":                 {GroupModel, "One agent handed work over to another."},
	"agent.invocation.started":      {GroupModel, "An agent was called."},
	"agent.invocation.completed":    {GroupModel, "The call of an agent ended."},
	"budget.reserved":               {GroupModel, "The run's budget was reserved at its start."},
	"budget.consumed":               {GroupModel, "Part of a budget was used."},
	"budget.threshold.crossed":      {GroupModel, "A budget's use reached its warning threshold."},
	"budget.exhausted":              {GroupModel, "A budget is used up."},
	"eval.started":                  {GroupModel, "A run of an evaluation suite started."},
	"eval.scored":                   {GroupModel, "One task of an evaluation was scored."},
	"eval.completed":                {GroupModel, "All tasks of an evaluation are scored."},
	"voice.speech_start":            {GroupModel, "A speaker started to speak."},
	"voice.transcript":              {GroupModel, "A segment of speech was recognised; its text is untrusted."},
	"voice.endpoint_candidate":      {GroupModel, "The speaker may have finished."},
	"voice.turn_commit":             {GroupModel, "The speaker's turn ended; the transcript is final."},
	"voice.synthesis_chunk":         {GroupModel, "A chunk of speech was synthesised; the payload has its location."},
	"voice.barge_in":                {GroupModel, "A speaker interrupted the playback."},
	"voice.cancelled":               {GroupModel, "The spoken answer was cancelled."},

	// tool
	"agent.toolCalled":       {GroupTool, "A tool was called."},
	"agent.toolReturned":     {GroupTool, "The tool returned a result or failed."},
	"tool.session.opened":    {GroupTool, "A session of several tool calls started."},
	"tool.session.closed":    {GroupTool, "The session of tool calls ended."},
	"connector.authorized":   {GroupTool, "A user's access to a third party was granted."},
	"connector.auth_expired": {GroupTool, "A user's access to a third party expired and could not be renewed."},
	"egress.decided":         {GroupTool, "An outgoing request was allowed or blocked."},

	// memory
	"memory.compacted":          {GroupMemory, "Memory entries were condensed into one."},
	"memory.written":            {GroupMemory, "The run wrote to memory."},
	"agent.memory.consolidated": {GroupMemory, "An agent's long-term memory was consolidated."},
	"commitment.fired":          {GroupMemory, "A standing commitment of an agent came due."},
	"workspace.updated":         {GroupMemory, "A file of the workspace was written or deleted."},

	// artifact
	"artifact.created": {GroupArtifact, "An artifact was created: an accepted envelope, or the output of a node."},

	// log
	"log.appended": {GroupLog, "A node wrote a log line."},

	// other
	"deployment.promoted":                {GroupOther, "A version of an agent was promoted."},
	"deployment.rolled-back":             {GroupOther, "An earlier version of an agent was restored."},
	"deployment.canary.adjusted":         {GroupOther, "The traffic share of an agent version changed."},
	"deployment.state.changed":           {GroupOther, "A deployment was paused, resumed or deprecated."},
	"roster.run.initiated":               {GroupOther, "A schedule or trigger started the run for a standing agent."},
	"trigger.subscription.state.changed": {GroupOther, "A trigger's subscription changed its state."},
	"trigger.delivery.attempted":         {GroupOther, "A trigger received an event and attempted its delivery."},
	"goal.evaluated":                     {GroupOther, "A standing goal was evaluated."},
	"goal.closed":                        {GroupOther, "A standing goal ended."},
	"import.applied":                     {GroupOther, "An export of another host was imported."},
}

// words are the first words of the types in the catalogue.
var words = func() map[string]bool {
	out := map[string]bool{}
	for t := range catalogue {
		head, _, _ := strings.Cut(string(t), ".")
		out[head] = true
	}
	return out
}()

// EventTypes lists the types of the catalogue, sorted.
func EventTypes() []EventType { return slices.Sorted(maps.Keys(catalogue)) }

// Describe returns the row of a type, and whether the catalogue has it.
func (t EventType) Describe() (TypeRow, bool) {
	r, ok := catalogue[t]
	if !ok {
		r.Group = GroupOther
	}
	return r, ok
}

// reservedVendors are not allowed as the first word of a vendor's event type (OpenWOP host contract
// §3.3).
var reservedVendors = []string{"openwop", "core", "community", "vendor", "private", "local"}

// maxEventType limits the name of an event type, in bytes.
const maxEventType = 128

// Known reports whether the type is in the catalogue or could be a vendor's: letters, digits, _ and
// - between dots, and a first word that the catalogue does not use.
func (t EventType) Known() bool {
	head, _, dotted := strings.Cut(string(t), ".")
	if words[head] {
		_, ours := catalogue[t]
		return ours
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
