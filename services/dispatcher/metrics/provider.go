package metrics

import "time"

// Queued counts a call of a model that was admitted, or whose run stopped waiting.
func (m *Metrics) Queued(provider string, waited time.Duration, _ bool) {
	m.queueSeconds.WithLabelValues(m.providers.value(provider)).Observe(max(waited, 0).Seconds())
}

// InFlight sets how many calls of a provider's models are in flight, and how many wait.
func (m *Metrics) InFlight(provider string, calls, waiting int) {
	name := m.providers.value(provider)
	m.inFlight.WithLabelValues(name).Set(float64(calls))
	m.queued.WithLabelValues(name).Set(float64(waiting))
}

// NoCapacity counts a call that its provider had no capacity for.
func (m *Metrics) NoCapacity(provider string) {
	m.refused.WithLabelValues(m.providers.value(provider)).Inc()
}

// Holds sets of how many pairs of model and credential the calls are held.
func (m *Metrics) Holds(provider string, pairs int) {
	m.holds.WithLabelValues(m.providers.value(provider)).Set(float64(pairs))
}

// Limits sets this process's share of a provider's limits, by the names of their settings; 0: there
// is no limit.
func (m *Metrics) Limits(provider string, calls int, requestsPerMinute, tokensPerMinute float64) {
	name := m.providers.value(provider)
	for limit, value := range map[string]float64{"maxConcurrent": float64(calls), "requestsPerMinute": requestsPerMinute, "tokensPerMinute": tokensPerMinute} {
		if value > 0 {
			m.limits.WithLabelValues(name, limit).Set(value)
		}
	}
}
