package quarantine

// The reasons of a quarantine. They are part of the API and of metrics.
const (
	ReasonDamaged    = "log_damaged"
	ReasonDefinition = "definition_missing"
	ReasonEngine     = "engine_version"
	ReasonPanic      = "panic"
	ReasonFailing    = "cannot_continue"
)

// Reasons returns all reasons in a fixed order.
func Reasons() []string {
	return []string{ReasonDamaged, ReasonDefinition, ReasonEngine, ReasonPanic, ReasonFailing}
}

// Cause is the cause of a quarantine.
type Cause struct {
	// Reason is one of Reasons.
	Reason string
	// Tries is the number of deliveries of the run.
	Tries int
	// Pos is the position of the run's last frame; 0 if that is unknown.
	Pos uint64
}
