package metrics

import "time"

// Queued observes the wait of a model call that was admitted or given up.
func (m *Metrics) Queued(provider string, waited time.Duration, _ bool) {
	m.queueSeconds.WithLabelValues(m.providers.value(provider)).Observe(max(waited, 0).Seconds())
}

// InFlight sets the number of a provider's calls in flight and waiting.
func (m *Metrics) InFlight(provider string, calls, waiting int) {
	name := m.providers.value(provider)
	m.inFlight.WithLabelValues(name).Set(float64(calls))
	m.queued.WithLabelValues(name).Set(float64(waiting))
}

// NoCapacity counts a call rejected for lack of capacity.
func (m *Metrics) NoCapacity(provider string) {
	m.refused.WithLabelValues(m.providers.value(provider)).Inc()
}

// Holds sets the number of held pairs of model and credential.
func (m *Metrics) Holds(provider string, pairs int) {
	m.holds.WithLabelValues(m.providers.value(provider)).Set(float64(pairs))
}

// Limits sets this process's share of a provider's limits, by setting; 0 means no limit.
func (m *Metrics) Limits(provider string, calls int, requestsPerMinute, tokensPerMinute float64) {
	name := m.providers.value(provider)
	for limit, value := range map[string]float64{
		"maxConcurrent":     float64(calls),
		"requestsPerMinute": requestsPerMinute,
		"tokensPerMinute":   tokensPerMinute,
	} {
		if value > 0 {
			m.limits.WithLabelValues(name, limit).Set(value)
		}
	}
}
