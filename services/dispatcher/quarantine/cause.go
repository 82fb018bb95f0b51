package quarantine

// The reasons of a quarantine. They are part of the API and of metrics.
const (
	ReasonDamaged    = "log_damaged"
	ReasonDefinition = "definition_missing"
	ReasonEngine     = "engine_version"
	ReasonPanic      = "panic"
	ReasonFailing    = "cannot_continue"
)

// Reasons are all of them, in a fixed order.
func Reasons() []string {
	return []string{ReasonDamaged, ReasonDefinition, ReasonEngine, ReasonPanic, ReasonFailing}
}

// Cause says why a run is quarantined.
type Cause struct {
	// Reason is one of Reasons.
	Reason string
	// Tries is how often the run was handed out.
	Tries int
}
