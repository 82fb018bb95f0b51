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
	"run.started":                {GroupRun, "The run began; the payload has its workflow and inputs."},
	"run.completed":              {GroupRun, "The run ended well; the payload has its outputs."},
	"run.failed":                 {GroupRun, "The run ended with an error; error.code says which."},
	"run.cancelled":              {GroupRun, "The run was cancelled, by a caller or with its parent."},
	"run.resuming":               {GroupRun, "A resume was asked for; work starts again."},
	"run.paused":                 {GroupRun, "The run was paused; nothing new starts until it is resumed."},
	"run.resumed":                {GroupRun, "The paused run goes on."},
	"run.restored-from-snapshot": {GroupRun, "The run's state was rebuilt from a snapshot."},
	"run.dead_lettered":          {GroupRun, "The run used up its retries and was put aside for an operator."},
	"workflow.restored":          {GroupRun, "A host that started anew took the run up from its log."},
	"workflow.stalled":           {GroupRun, "The run made no progress for a while."},
	"version.pinned":             {GroupRun, "The run settled for one version of a change, and keeps it."},
	"replay.diverged":            {GroupRun, "A replay gave something else than the run it repeats."},
	"replay.divergedAtRefusal":   {GroupRun, "A replay was refused where the run it repeats was not, or the other way round."},
	"lease.acquired":             {GroupRun, "A host took the run to carry it out."},
	"lease.renewed":              {GroupRun, "The host that carries the run out keeps it."},
	"lease.lost":                 {GroupRun, "The host that carried the run out was silent too long, or gave it up."},
	"lease.handed-off":           {GroupRun, "The run went from one host to another."},

	// node
	"node.started":                            {GroupNode, "An attempt of a node began; attempts count from 0."},
	"node.completed":                          {GroupNode, "The node ended well; the payload has its outputs."},
	"node.failed":                             {GroupNode, "The node failed, after all its retries."},
	"node.suspended":                          {GroupNode, "The node waits for an answer from outside."},
	"node.suspend-failed":                     {GroupNode, "The node could not be made to wait."},
	"node.resumed":                            {GroupNode, "The node goes on with the answer it waited for."},
	"node.retried":                            {GroupNode, "An attempt failed, and another one follows."},
	"node.skipped":                            {GroupNode, "The node is not carried out: no edge to it holds, or its gate says no."},
	"node.cancelled":                          {GroupNode, "The node was stopped before its end."},
	"node.dispatched":                         {GroupNode, "The node started a run of its own."},
	"variable.changed":                        {GroupNode, "A variable of the run has a new value."},
	"channel.written":                         {GroupNode, "A value was written to a channel, and merged by its reducer."},
	"workflow.loopback-limit":                 {GroupNode, "A loop went round as often as its limit allows."},
	"cap.breached":                            {GroupNode, "A limit was passed; the payload has the limit and what was seen."},
	"runOrchestrator.decided":                 {GroupNode, "A supervisor decided which worker goes next, or that the work is done."},
	"core.workflowChain.event":                {GroupNode, "Work passed from a planner to a worker, or back."},
	"core.workflowChain.confidence-escalated": {GroupNode, "A supervisor was too unsure, and asks a person."},

	// interrupt
	"interrupt.requested":     {GroupInterrupt, "The run asks for an answer from outside: an approval, a clarification or an event."},
	"interrupt.resolved":      {GroupInterrupt, "The answer came, or the time for it is over."},
	"approval.requested":      {GroupInterrupt, "The run asks to have something approved."},
	"approval.received":       {GroupInterrupt, "One vote or decision on an approval was recorded."},
	"approval.granted":        {GroupInterrupt, "An approval gate was granted."},
	"approval.rejected":       {GroupInterrupt, "An approval gate was rejected."},
	"approval.overridden":     {GroupInterrupt, "Somebody with the right to do so passed an approval gate, and gave a reason."},
	"clarification.requested": {GroupInterrupt, "The model asks questions that a person has to answer."},
	"clarification.resolved":  {GroupInterrupt, "The questions were answered."},
	"conversation.opened":     {GroupInterrupt, "A conversation of several turns began."},
	"conversation.exchanged":  {GroupInterrupt, "One turn of the conversation is complete."},
	"conversation.closed":     {GroupInterrupt, "The conversation ended."},
	"authorization.decided":   {GroupInterrupt, "Somebody was allowed to do something, or was not."},
	"proposal.created":        {GroupInterrupt, "The host drafted something it learned, for a person to review."},
	"proposal.activated":      {GroupInterrupt, "A reviewed draft was put to use."},

	// envelope
	"envelope.retry.attempted":    {GroupEnvelope, "An emission was not usable, and the model is asked again; reason says why."},
	"envelope.retry.exhausted":    {GroupEnvelope, "No attempt gave a usable envelope; finalReason says why the last did not."},
	"envelope.refusal":            {GroupEnvelope, "The provider's model refused; it is not asked again."},
	"envelope.truncated":          {GroupEnvelope, "The model's answer was cut off before the envelope was complete."},
	"envelope.nlToFormat.engaged": {GroupEnvelope, "The model is asked in two steps: first in prose, then for the envelope."},
	"envelope.recovery.applied":   {GroupEnvelope, "Malformed JSON was made readable before it was checked."},

	// model
	"provider.usage":                {GroupModel, "A model was called; the payload has the tokens, and the cost if it is known."},
	"model.capability.substituted":  {GroupModel, "The model lacks a capability, and the node's fallback model took its place."},
	"model.capability.insufficient": {GroupModel, "The model lacks a capability and nothing took its place; the node is not carried out."},
	"output.chunk":                  {GroupModel, "A piece of a model's answer, while it arrives."},
	"prompt.composed":               {GroupModel, "The prompt of a model call was put together."},
	"agent.promptResolved":          {GroupModel, "A prompt reference was resolved; the payload has each layer that had a say."},
	"agent.reasoned":                {GroupModel, "A model or agent gave its reasoning; nothing is routed by it."},
	"agent.reasoning.delta":         {GroupModel, "A piece of reasoning, while it arrives."},
	"agent.decided":                 {GroupModel, "An agent made a decision."},
	"agent.verified":                {GroupModel, "A critic judged a result before it is used."},
	"agent.handoff":                 {GroupModel, "One agent handed over to another."},
	"agent.invocation.started":      {GroupModel, "An agent was called."},
	"agent.invocation.completed":    {GroupModel, "The call of an agent ended."},
	"budget.reserved":               {GroupModel, "The run's budget was settled at its start."},
	"budget.consumed":               {GroupModel, "Some of a budget was used."},
	"budget.threshold.crossed":      {GroupModel, "A budget is used up as far as its warning threshold."},
	"budget.exhausted":              {GroupModel, "A budget is used up."},
	"eval.started":                  {GroupModel, "A run of an evaluation suite began."},
	"eval.scored":                   {GroupModel, "One task of an evaluation was scored."},
	"eval.completed":                {GroupModel, "All tasks of an evaluation are scored."},
	"voice.speech_start":            {GroupModel, "Somebody began to speak."},
	"voice.transcript":              {GroupModel, "A piece of speech was recognised; its text is untrusted."},
	"voice.endpoint_candidate":      {GroupModel, "The speaker may have come to an end."},
	"voice.turn_commit":             {GroupModel, "The speaker's turn is over; the transcript is settled."},
	"voice.synthesis_chunk":         {GroupModel, "A piece of speech was made; the payload names where it is."},
	"voice.barge_in":                {GroupModel, "Somebody spoke while speech was played."},
	"voice.cancelled":               {GroupModel, "The answer to what was said was stopped."},

	// tool
	"agent.toolCalled":       {GroupTool, "A tool was called."},
	"agent.toolReturned":     {GroupTool, "The tool answered, or failed."},
	"tool.session.opened":    {GroupTool, "A session of several tool calls began."},
	"tool.session.closed":    {GroupTool, "The session of tool calls ended."},
	"connector.authorized":   {GroupTool, "A user's access to a third party was granted."},
	"connector.auth_expired": {GroupTool, "A user's access to a third party ran out and could not be renewed."},
	"egress.decided":         {GroupTool, "A request to the outside was allowed or stopped."},

	// memory
	"memory.compacted":          {GroupMemory, "Memory entries were condensed into one."},
	"memory.written":            {GroupMemory, "The run wrote to memory."},
	"agent.memory.consolidated": {GroupMemory, "An agent's long-term memory was tidied."},
	"commitment.fired":          {GroupMemory, "A standing commitment of an agent came due."},
	"workspace.updated":         {GroupMemory, "A file of the workspace was written or deleted."},

	// artifact
	"artifact.created": {GroupArtifact, "An artifact was made: an accepted envelope, or what a node produced."},

	// log
	"log.appended": {GroupLog, "A node wrote a line of log."},

	// other
	"deployment.promoted":                {GroupOther, "A version of an agent was promoted."},
	"deployment.rolled-back":             {GroupOther, "An earlier version of an agent was put back."},
	"deployment.canary.adjusted":         {GroupOther, "A version of an agent gets another share of the traffic."},
	"deployment.state.changed":           {GroupOther, "A deployment was paused, resumed or deprecated."},
	"roster.run.initiated":               {GroupOther, "A schedule or trigger started the run for a standing agent."},
	"trigger.subscription.state.changed": {GroupOther, "A trigger's subscription changed its state."},
	"trigger.delivery.attempted":         {GroupOther, "Something came in for a trigger, and was delivered or not."},
	"goal.evaluated":                     {GroupOther, "A standing goal was judged."},
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
