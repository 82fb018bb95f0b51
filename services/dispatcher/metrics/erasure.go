package metrics

// Erased counts an attempt to remove the data of an erased run.
func (m *Metrics) Erased(done bool) {
	result := "failed"
	if done {
		result = "done"
	}
	m.erasures.WithLabelValues(result).Inc()
}
