package modelgate

// PolicyMode is what an operator's rule does to the calls of a provider (OpenWOP host
// contract §5.8).
type PolicyMode string

// The modes, as the discovery document names them.
const (
	// Disabled: it is not called.
	Disabled PolicyMode = "disabled"
	// Optional: there is no rule.
	Optional PolicyMode = "optional"
	// Required: it is called with the tenant's own key only.
	Required PolicyMode = "required"
	// Restricted: only some of its models are asked.
	Restricted PolicyMode = "restricted"
)

// PolicyModes are those that a rule can have.
func PolicyModes() []PolicyMode { return []PolicyMode{Disabled, Optional, Required, Restricted} }
