// Package machine is the run loop as a pure state machine: it folds events into
// state and says which events come next. It knows no clock, log or network; the
// executor around it appends what it says and carries out the effects it asks for.
//
// All steps that need nobody outside are taken at once and appended as one
// frame, so that a run of pure nodes costs two frames however many nodes it has, as
// long as what they tell is not large (bound.go).
package machine

import (
	"time"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Limits are the host's bounds on a run.
type Limits struct {
	// MaxNodeExecutions limits the transitions to started of runs whose record sets no limit,
	// which are those of earlier versions; recursionLimit can only lower it.
	MaxNodeExecutions int
	// MaxDuration limits the time of such runs from run.started; runTimeoutMs can only lower it.
	MaxDuration time.Duration
	// MaxParallel bounds the effects of one run that execute at a time.
	MaxParallel int
}

// Plan is a definition made ready to execute.
type Plan struct {
	Def   *workflow.Definition
	Graph *workflow.Graph
	// Flow are the conditions and expressions of Def, compiled.
	Flow  *definition.Flow
	Types node.Catalog
	// Gate holds the model that a node would ask against what its type requires; nil:
	// requirements are opaque.
	Gate Gate
	// Secrets looks for those that a type needs; nil: they are not looked for.
	Secrets Secrets
	// Policy looks for a rule against the model that a node would ask; nil: there are no
	// rules.
	Policy Policy
	// Capabilities are the runtime capabilities of the host.
	Capabilities []string
}

// Gate decides one dispatch of a tenant's. The input has the node's config and the
// run's configurable, which say what the active model is; the ref names the run's own
// keys.
type Gate func(tenant, credentialRef string, needs modelgate.Needs, in node.Input) (active modelgate.Model, o modelgate.Outcome)

// Secrets finds why a run's node cannot have the secrets that its type needs; nil: it
// can.
type Secrets func(r *wire.RunRecord, needed []pack.Secret, in node.Input) *wire.NodeError

// Policy finds why a run's node may not ask the model that it would; nil: it may.
type Policy func(r *wire.RunRecord, in node.Input) *wire.NodeError

// Effect asks the executor to carry out a node.
type Effect struct {
	NodeID  string
	TypeID  string
	Attempt int
	Input   node.Input
	// Trust is the meet of what the node's inputs come from.
	Trust wire.Trust
	// Clarifications counts the node's accepted clarification requests so far.
	Clarifications int
	// Waits counts the node's waits for capacity in a row.
	Waits int
	// Answered are the questions that the node's model asked, and that were answered.
	Answered []*runstate.Interrupt
	// Fallback is the model that is asked instead of the node's own; nil: none. Where
	// the log does not tell its names, Needs does.
	Fallback *modelgate.Model
	Needs    *modelgate.Needs
	// Retries are those that an executor announced which was lost.
	Retries []runstate.Retry
	// Spawn is the run to start; nil: the effect is another one.
	Spawn *Spawn
}

// Machine is one run in execution. Not safe for concurrent use: one goroutine,
// the run's only writer, owns it.
type Machine struct {
	plan   Plan
	limits Limits
	st     *runstate.State
	// pending are events that are applied to the state and not yet appended.
	pending []wire.Event
	// clean tells for each pending event that it holds ids and numbers only,
	// nothing that could carry a secret.
	clean []bool
	// pendingBytes counts the bytes of pending, and more says that the machine has stopped only to
	// have them appended.
	pendingBytes int
	appendFirst  bool
	// externalCount is how much of pending came from outside, before Advance went on from it, and
	// givenKind the kind of the frame that makes.
	externalCount int
	externalKind  subject.Kind
	// note goes into the log with what is pending.
	note *wire.Note
	// wakeNeeded is set when somebody must take the run up.
	wakeNeeded bool
	// handedOut are the running nodes whose effect has been handed out.
	handedOut map[string]bool
	// external is set where somebody else may be carrying out the run, carried where
	// somebody is.
	external, executing bool
	// conditions are the conditions that were judged and cannot come to anything else.
	conditions map[string]bool
	// recovered is set once lost effects have been looked after, recovering until that is
	// appended.
	recovered, recovering bool
	// history is set in a replay. cut is set in a branch whose history ends where the fork's
	// does, and mended once that end was looked after.
	history, branchHistory *History
	repaired               bool
}

// New makes the machine of a run from its folded state.
func New(plan Plan, limits Limits, st *runstate.State) *Machine {
	return &Machine{plan: plan, limits: limits, st: st, handedOut: map[string]bool{}, conditions: map[string]bool{}}
}

// State is the run's state, pending events included. The caller must not change it.
func (m *Machine) State() *runstate.State { return m.st }

// Pending are the events to append next, and for each whether it is clean.
func (m *Machine) Pending() (events []wire.Event, clean []bool) { return m.pending, m.clean }

// ExternalEvents is how many of the pending events came from outside: the others follow from them.
// The kind is that of the frame that they make by themselves.
func (m *Machine) ExternalEvents() (n int, kind subject.Kind) { return m.externalCount, m.externalKind }

// Note is what goes into the log with what is pending; nil: nothing.
func (m *Machine) Note() *wire.Note { return m.note }

// rememberNote folds a note in, and has it appended.
func (m *Machine) rememberNote(n wire.Note) {
	m.st.Remember(n)
	if m.note != nil {
		n.Held, n.Begun = m.note.Held, m.note.Begun
	}
	m.note = &n
}

// ForExternalChange makes the machine one that changes a run which somebody else may be carrying
// out: it recovers nothing.
func (m *Machine) ForExternalChange() *Machine {
	m.external, m.recovered, m.executing = true, true, m.hasRunningEffect()
	return m
}

// Flushed forgets what is pending after it was appended.
func (m *Machine) Flushed() {
	m.pending, m.clean, m.externalCount, m.note, m.wakeNeeded, m.recovering = nil, nil, 0, nil, false, false
	m.pendingBytes = 0
}

// Adopt folds events that somebody else appended to the run's log for us: the
// acceptor, which records what it accepts.
func (m *Machine) Adopt(events []wire.Event) {
	for _, e := range events {
		m.st.Apply(e)
	}
}

// ReplaceState replaces the state by the one folded from the log, after the redactor
// changed what was appended. Effects that were asked for and not begun are
// forgotten; Advance asks for them again, with what is in the log.
func (m *Machine) ReplaceState(st *runstate.State, notBegun []Effect) {
	m.st = st
	clear(m.conditions)
	if m.recovering { // it is not in the log
		m.recovered = false
	}
	m.Flushed()
	for _, e := range notBegun {
		delete(m.handedOut, e.NodeID)
	}
}

// step is a node's place in the graph; id must be of the definition.
func (m *Machine) step(id string) *workflow.Step {
	i, _ := m.plan.Graph.Lookup(id)
	return &m.plan.Graph.Steps[i]
}

// FrameKind is the kind of the frame that what is pending makes. A run somebody is
// carrying out an effect for is not handed out again: whoever does it finds the frame.
func (m *Machine) FrameKind() subject.Kind {
	switch {
	case m.st.Status.Terminal():
		return subject.End
	case m.note != nil && m.note.Cancel != nil:
		return subject.Wake // whoever takes it up sees the cancellation through
	case m.wakeNeeded && m.external && !m.executing:
		return subject.Wake
	default:
		return subject.Step
	}
}

func (m *Machine) hasRunningEffect() bool {
	for id, n := range m.st.Nodes {
		if n.Status == runstate.NodeRunning && m.needsExecutor(id, n) {
			return true
		}
	}
	return false
}

// needsExecutor reports whether a running node takes somebody outside the machine. One that
// waits for its child does not.
func (m *Machine) needsExecutor(id string, n *runstate.Node) bool {
	switch m.plan.Types[n.TypeID].Class {
	case node.Effect:
		return true
	case node.Spawns:
		_, there := ExpectedChild(m.st, id)
		return !there
	default:
		return false
	}
}

// Emit places drafts of an effect after what is pending and folds them in.
func (m *Machine) Emit(now time.Time, drafts ...wire.Draft) {
	for _, d := range drafts {
		m.emit(now, d, false)
	}
}

func (m *Machine) emit(now time.Time, d wire.Draft, clean bool) {
	m.placeEvent(now, m.withTrust(d), clean)
}

// WithTrust are drafts as Emit would tag them, for somebody else who appends them for us.
func (m *Machine) WithTrust(drafts []wire.Draft) []wire.Draft {
	out := make([]wire.Draft, len(drafts))
	for i, d := range drafts {
		out[i] = m.withTrust(d)
	}
	return out
}

// withTrust lets a draft's trust fall: nothing of an untrusted run is better than what it was
// given, and nothing of a node better than what it told before.
func (m *Machine) withTrust(d wire.Draft) wire.Draft {
	if n := m.st.Nodes[d.NodeID]; m.st.Record.TrustBoundary == wire.Untrusted || n != nil && n.Trust == wire.Untrusted {
		d.Trust = wire.Untrusted
	}
	return d
}

// placeEvent is emit for what has no trust tag, whatever it is about.
func (m *Machine) placeEvent(now time.Time, d wire.Draft, clean bool) {
	if m.history != nil {
		m.compareWithSource(now, d)
	}
	e := d.Place(m.st.Record.RunID, m.st.Next, now)
	if m.history != nil && keepsSourceTime(m.st.Record, d.Type) {
		e.SourceTime = m.history.sourceTime(d.Type, d.NodeID)
	}
	m.st.Apply(e)
	if m.history != nil {
		m.history.follow(e)
	}
	m.pendingBytes += len(e.Payload)
	m.pending = append(m.pending, e)
	m.clean = append(m.clean, clean)
}

// emitFact emits an event of the run loop's own: ids and numbers only.
func (m *Machine) emitFact(now time.Time, t wire.EventType, nodeID string, payload any) {
	m.emit(now, m.newDraft(t, nodeID, wire.Trusted, payload), true)
}

// emitData emits an event of the run loop's that carries user data.
func (m *Machine) emitData(now time.Time, t wire.EventType, nodeID string, trust wire.Trust, payload any) {
	m.emit(now, m.newDraft(t, nodeID, trust, payload), false)
}

// newDraft is no more trusted than the node it is about.
func (m *Machine) newDraft(t wire.EventType, nodeID string, trust wire.Trust, payload any) wire.Draft {
	if nodeID != "" {
		trust = trust.Meet(m.nodeTrust(nodeID))
	}
	return wire.Draft{Type: t, NodeID: nodeID, Payload: strictjson.Render(payload), Trust: untrustedOnly(trust)}
}
