package metrics

import (
	"encoding/json"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// typeCounters are the series of a node type.
type typeCounters struct {
	attempts                     prometheus.Counter
	completed, failed, cancelled prometheus.Counter
	seconds                      prometheus.Observer
}

// Appended counts events that this process appended to a run. st is the state after them.
func (m *Metrics) Appended(st *runstate.State, events []wire.Event) {
	for i := range events {
		m.countEvent(st, &events[i])
	}
}

func (m *Metrics) countEvent(st *runstate.State, e *wire.Event) {
	switch e.Type {
	case wire.EventRunStarted:
		m.backlogSeconds.Observe(secondsBetween(st.Record.CreatedAt, e.Timestamp))
	case wire.EventRunCompleted, wire.EventRunFailed, wire.EventRunCancelled:
		m.countRunEnd(st, e)
	case wire.EventNodeStarted:
		if n := st.Nodes[e.NodeID]; n != nil {
			m.typeSeries(n.TypeID).attempts.Inc()
		}
	case wire.EventNodeCompleted, wire.EventNodeFailed, wire.EventNodeCancelled:
		m.countNodeEnd(st, e)
	}
	if !st.Record.Replays() { // a replay makes no calls and has no costs; its source's events are repeated
		m.countExternal(st, e)
	}
}

// countExternal counts external calls and questions.
func (m *Metrics) countExternal(st *runstate.State, e *wire.Event) {
	switch e.Type {
	case wire.EventProviderUsage:
		m.addUsage(e)
	case wire.EventLogAppended:
		m.addNodeCost(e)
	case wire.EventCapBreached:
		var p struct {
			Kind string `json:"kind"`
		}
		_ = json.Unmarshal(e.Payload, &p) // an unreadable payload has no kind
		m.caps.WithLabelValues(p.Kind).Inc()
	case wire.EventInterruptRequested:
		if q := findInterrupt(st, e); q != nil {
			m.interrupts.WithLabelValues(string(q.Kind)).Inc()
		}
	case wire.EventInterruptResolved:
		if q := findInterrupt(st, e); q != nil {
			m.interruptsSeconds.WithLabelValues(string(q.Kind)).Observe(secondsBetween(q.RequestedAt, e.Timestamp))
		}
	}
}

// findInterrupt returns the interrupt of an event; nil if unknown.
func findInterrupt(st *runstate.State, e *wire.Event) *runstate.Interrupt {
	var p struct {
		InterruptID string `json:"interruptId"`
	}
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload names none
	return st.Find(p.InterruptID)
}

func (m *Metrics) countRunEnd(st *runstate.State, e *wire.Event) {
	labels := [...]string{m.workflows.value(st.Record.WorkflowID), string(st.Status)}
	m.completed.WithLabelValues(labels[:]...).Inc()
	m.runSeconds.WithLabelValues(labels[:]...).Observe(secondsBetween(st.StartedAt, e.Timestamp))
}

// countNodeEnd counts the end of a started node. A node rejected before its start had no attempt.
func (m *Metrics) countNodeEnd(st *runstate.State, e *wire.Event) {
	n := st.Nodes[e.NodeID]
	if n == nil || n.Began == "" {
		return
	}
	t := m.typeSeries(n.TypeID)
	switch e.Type {
	case wire.EventNodeCompleted:
		t.completed.Inc()
	case wire.EventNodeFailed:
		t.failed.Inc()
	default:
		t.cancelled.Inc()
	}
	t.seconds.Observe(secondsBetween(n.Began, e.Timestamp))
}

// typeSeries returns the series of a type. They are cached, because every node needs them.
func (m *Metrics) typeSeries(id string) *typeCounters {
	if t, ok := m.byType.Load(id); ok {
		return t.(*typeCounters) //nolint:forcetypeassert // no other type is stored
	}
	name := m.types.value(id)
	t := &typeCounters{
		attempts:  m.attempts.WithLabelValues(name),
		completed: m.nodes.WithLabelValues(name, string(runstate.NodeCompleted)),
		failed:    m.nodes.WithLabelValues(name, string(runstate.NodeFailed)),
		cancelled: m.nodes.WithLabelValues(name, string(runstate.NodeCancelled)),
		seconds:   m.nodeSeconds.WithLabelValues(name),
	}
	if name != other { // cache no more types than have series
		m.byType.Store(id, t)
	}
	return t
}

// addUsage counts the tokens and cost of a model call, as the run's costs do.
func (m *Metrics) addUsage(e *wire.Event) {
	var p struct {
		Provider     string   `json:"provider"`
		Model        string   `json:"model"`
		InputTokens  int64    `json:"inputTokens"`
		OutputTokens int64    `json:"outputTokens"`
		CostUSD      *float64 `json:"costEstimateUsd"`
	}
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload counts nothing
	m.addTokens(p.Provider, p.InputTokens, p.OutputTokens)
	operation, provider, model := m.apis.OperationName(p.Provider), m.apis.ProviderName(m.providers.value(p.Provider)), m.models.value(p.Model)
	m.callTokens.WithLabelValues(operation, provider, model, "input").Observe(float64(p.InputTokens))
	m.callTokens.WithLabelValues(operation, provider, model, "output").Observe(float64(p.OutputTokens))
	if p.CostUSD != nil {
		add(m.usd.WithLabelValues(m.providers.value(p.Provider)), *p.CostUSD)
	}
}

// addNodeCost counts the cost that a node reports in addition to model calls.
func (m *Metrics) addNodeCost(e *wire.Event) {
	if e.CausationID != "" { // the event describes an envelope
		return
	}
	var p struct {
		Fields json.RawMessage `json:"fields"`
	}
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload counts nothing
	a := cost.Sanitize(p.Fields)
	if a == nil {
		return
	}
	provider, _ := a[cost.Provider].(string)
	m.addTokens(provider, a.Tokens(cost.Input), a.Tokens(cost.Output))
	if usd, ok := a.Dollars(); ok {
		add(m.usd.WithLabelValues(m.providers.value(provider)), usd)
	}
}

func (m *Metrics) addTokens(provider string, input, output int64) {
	name := m.providers.value(provider)
	add(m.tokens.WithLabelValues(name, "input"), float64(input))
	add(m.tokens.WithLabelValues(name, "output"), float64(output))
}

// secondsBetween returns the time between two timestamps of a log in seconds; 0 if clocks disagree.
func secondsBetween(from, to string) float64 {
	if from == to { // both are from one frame, as for most nodes
		return 0
	}
	began, err1 := time.Parse(wire.TimeLayout, from)
	ended, err2 := time.Parse(wire.TimeLayout, to)
	if err1 != nil || err2 != nil {
		return 0
	}
	return max(ended.Sub(began), 0).Seconds()
}
