// Package machine is the run loop as a pure state machine: it folds events into state and derives
// the next events. It uses no clock, log or network. The engine appends its events and performs its
// effects.
//
// All steps that need no effect are taken in one Advance and appended as one frame. A run of pure
// nodes costs two frames, however many nodes it has, unless their events are large
// (size_limits.go).
//
// A Machine consists of the run's state, the next frame (pending.go), a runner and an environment.
// The runner takes the steps: an execution (execution.go), a branch (repair.go), a replay
// (replay.go), or a change from outside (execution.go). The steps get decisions and times from the
// environment: the host (environment.go), or the source of a replay (replay_environment.go).
package machine

import (
	"maps"
	"slices"
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

// Limits are the host's limits on a run.
type Limits struct {
	// MaxNodeExecutions limits the node starts of runs whose record sets no limit, as in earlier
	// versions. recursionLimit can only lower it.
	MaxNodeExecutions int
	// MaxDuration limits the time of such runs from run.started; runTimeoutMs can only lower it.
	MaxDuration time.Duration
	// MaxParallel limits the effects of one run that execute at a time.
	MaxParallel int
	// QuestionTimeout is the time limit for answers to a model's questions if its node sets none; 0
	// means none.
	QuestionTimeout time.Duration
}

// Plan is a definition that is ready to execute.
type Plan struct {
	Def   *workflow.Definition
	Graph *workflow.Graph
	// Flow has the compiled conditions and expressions of Def.
	Flow  *definition.Flow
	Types node.Catalog
	// Gate checks a node's model against the requirements of its type; nil accepts every model.
	Gate Gate
	// Secrets checks that the secrets of a node type are available; nil disables the check.
	Secrets Secrets
	// Policy checks the operator's rules for a node's model; nil means no rules.
	Policy Policy
	// Capabilities are the runtime capabilities of the host.
	Capabilities []string
	// NoAIEnvelope fails nodes that emit envelopes.
	NoAIEnvelope bool
}

// Gate decides whether a tenant's node may start with its model. The input contains the node's
// config and the run's configurable, which select the active model. The ref names the run's own
// keys.
type Gate func(
	tenant, credentialRef string, needs modelgate.Needs, in node.Input,
) (active modelgate.Model, o modelgate.Outcome)

// Secrets returns why the secrets that a node's type needs are unavailable; nil means available.
type Secrets func(r *wire.RunRecord, needed []pack.Secret, in node.Input) *wire.NodeError

// Policy returns why a node may not call its model; nil means allowed.
type Policy func(r *wire.RunRecord, in node.Input) *wire.NodeError

// Effect is a request to the engine to execute a node.
type Effect struct {
	NodeID  string
	TypeID  string
	Attempt int
	Input   node.Input
	// Trust is the meet of the sources of the node's inputs.
	Trust wire.Trust
	// Clarifications counts the node's accepted clarification requests so far.
	Clarifications int
	// QuestionTimeout is the time limit for answers to the model's questions; 0 means none.
	QuestionTimeout time.Duration
	// Waits counts the node's consecutive waits for capacity.
	Waits int
	// Answered are the answered questions of the node's model.
	Answered []*runstate.Interrupt
	// Fallback is the model to call instead of the node's own; nil means none. If the log does not
	// contain its name, Needs does.
	Fallback *modelgate.Model
	Needs    *modelgate.Needs
	// Retries are the retries that a lost executor announced.
	Retries []runstate.Retry
	// Spawn is the run to start; nil for other effects.
	Spawn *Spawn
}

// Machine is one run. It is not safe for concurrent use: the goroutine of the run's only writer owns
// it.
type Machine struct {
	plan   Plan
	limits Limits
	st     *runstate.State
	// pending is the next frame.
	pending pending
	// mustAppend is set if Advance stopped only because the pending events must be appended.
	mustAppend bool
	// handedOut are the running nodes whose effect was returned by Advance.
	handedOut map[string]bool
	// conditions are the results of conditions that cannot change any more.
	conditions map[string]bool
	// runner takes the run's steps in env.
	runner runner
	env    environment
}

// New returns the machine that executes a run from its folded state.
func New(plan Plan, limits Limits, st *runstate.State) *Machine {
	m := newCore(plan, limits, st)
	m.runner, m.env = &execution{Machine: m}, host{m}
	return m
}

// NewWithoutDefinition returns a machine that can only end its run. That needs no definition, which
// may be missing. Its steps are the started nodes, by id.
func NewWithoutDefinition(limits Limits, st *runstate.State) *Machine {
	g := &workflow.Graph{}
	for _, id := range slices.Sorted(maps.Keys(st.Nodes)) {
		g.Steps = append(g.Steps, workflow.Step{Node: &workflow.Node{ID: id}})
	}
	return New(Plan{Def: &workflow.Definition{}, Graph: g}, limits, st)
}

// NewBranch returns the machine that executes a branch whose copied history may end within a step.
// The history is that of its source.
func NewBranch(plan Plan, limits Limits, st *runstate.State, h *History) *Machine {
	m := newCore(plan, limits, st)
	m.runner, m.env = &branch{execution: execution{Machine: m}, history: h}, host{m}
	return m
}

// NewReplay returns the machine that replays the history of a run. It executes nodes that depend
// only on their inputs, repeats all other events, and makes no external calls (OpenWOP host contract
// §7.2).
func NewReplay(plan Plan, limits Limits, st *runstate.State, h *History) *Machine {
	m := newCore(plan, limits, st)
	r := &replay{Machine: m, history: h}
	m.runner, m.env = r, r
	return m
}

// NewChange returns a machine that applies a request from outside to a run which another session may
// execute.
func NewChange(plan Plan, limits Limits, st *runstate.State) *Machine {
	m := newCore(plan, limits, st)
	m.runner, m.env = change{Machine: m, executing: m.hasRunningEffect()}, host{m}
	return m
}

func newCore(plan Plan, limits Limits, st *runstate.State) *Machine {
	return &Machine{plan: plan, limits: limits, st: st, handedOut: map[string]bool{}, conditions: map[string]bool{}}
}

// State is the run's state, including pending events. The caller must not change it.
func (m *Machine) State() *runstate.State { return m.st }

// IsReplay reports whether the run replays another one.
func (m *Machine) IsReplay() bool { return m.st.Record.Replays() }

// Pending returns the events to append next, and for each whether it is clean.
func (m *Machine) Pending() (events []wire.Event, clean []bool) {
	return m.pending.events, m.pending.clean
}

// ExternalEvents returns the number of pending events that came from outside; the others are
// derived from them. The kind is that of the frame that they make by themselves.
func (m *Machine) ExternalEvents() (n int, kind subject.Kind) {
	return m.pending.external, m.pending.externalKind
}

// Note is the note of the next frame; nil means none.
func (m *Machine) Note() *wire.Note { return m.pending.note }

// MustAppend reports that the last Advance stopped only because its events must be appended.
func (m *Machine) MustAppend() bool { return m.mustAppend }

// rememberNote applies a note and adds it to the next frame.
func (m *Machine) rememberNote(n wire.Note) {
	m.st.Remember(n)
	m.pending.setNote(n)
}

// Flushed drops the pending events after they were appended.
func (m *Machine) Flushed() { m.pending = pending{} }

// Adopt folds events that the acceptor appended for this machine.
func (m *Machine) Adopt(events []wire.Event) {
	for _, e := range events {
		m.st.Apply(e)
	}
}

// ReplaceState replaces the state by the one folded from the log, for example after the redactor
// changed events. Advance returns the effects in notBegun again, with inputs from the log.
func (m *Machine) ReplaceState(st *runstate.State, notBegun []Effect) {
	m.st = st
	clear(m.conditions)
	m.runner.dropped(m.pending)
	m.pending = pending{}
	for _, e := range notBegun {
		delete(m.handedOut, e.NodeID)
	}
}

// step returns a node's step in the graph; id must be in the definition.
func (m *Machine) step(id string) *workflow.Step {
	i, _ := m.plan.Graph.Lookup(id)
	return &m.plan.Graph.Steps[i]
}

// FrameKind is the kind of the frame of the pending events. A run whose effect a session executes
// is not enqueued again: that session finds the frame.
func (m *Machine) FrameKind() subject.Kind {
	switch {
	case m.st.Status.Terminal():
		return subject.End
	case m.pending.note != nil && m.pending.note.Cancel != nil:
		return subject.Wake // the next session completes the cancellation
	case m.pending.wake && m.runner.enqueues():
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

// needsExecutor reports whether a running node needs the engine. A node that waits for its child
// does not.
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

// Emit adds drafts of an effect to the pending events.
func (m *Machine) Emit(now time.Time, drafts ...wire.Draft) {
	for _, d := range drafts {
		m.emit(now, d, false)
	}
}

func (m *Machine) emit(now time.Time, d wire.Draft, clean bool) {
	m.env.placeEvent(now, m.withTrust(d), clean)
}

// WithTrust returns drafts with the trust tags of Emit, for the acceptor to append.
func (m *Machine) WithTrust(drafts []wire.Draft) []wire.Draft {
	out := make([]wire.Draft, len(drafts))
	for i, d := range drafts {
		out[i] = m.withTrust(d)
	}
	return out
}

// withTrust lowers a draft's trust: to that of an untrusted run, and to that of the node's earlier
// events.
func (m *Machine) withTrust(d wire.Draft) wire.Draft {
	if n := m.st.Nodes[d.NodeID]; m.st.Record.TrustBoundary == wire.Untrusted || n != nil && n.Trust == wire.Untrusted {
		d.Trust = wire.Untrusted
	}
	return d
}

// addEvent applies an event and adds it to the next frame.
func (m *Machine) addEvent(e wire.Event, clean bool) {
	m.st.Apply(e)
	m.pending.add(e, clean)
}

// repeatEvent emits a recorded event unchanged.
func (m *Machine) repeatEvent(now time.Time, c *recorded) {
	m.env.placeEvent(now, wire.Draft{
		Type:        c.Type,
		NodeID:      c.NodeID,
		Payload:     c.Payload,
		CausationID: c.CausationID,
		Trust:       c.ContentTrust,
	}, false)
}

// emitFact emits an event of the run loop that contains only ids and numbers.
func (m *Machine) emitFact(now time.Time, t wire.EventType, nodeID string, payload any) {
	m.emit(now, m.newDraft(t, nodeID, wire.Trusted, payload), true)
}

// emitData emits an event of the run loop that contains user data.
func (m *Machine) emitData(now time.Time, t wire.EventType, nodeID string, trust wire.Trust, payload any) {
	m.emit(now, m.newDraft(t, nodeID, trust, payload), false)
}

// newDraft returns a draft that is at most as trusted as its node.
func (m *Machine) newDraft(t wire.EventType, nodeID string, trust wire.Trust, payload any) wire.Draft {
	if nodeID != "" {
		trust = trust.Meet(m.nodeTrust(nodeID))
	}
	return wire.Draft{Type: t, NodeID: nodeID, Payload: strictjson.Render(payload), Trust: untrustedOnly(trust)}
}
