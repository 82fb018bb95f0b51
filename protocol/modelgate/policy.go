package modelgate

// PolicyMode is the effect of an operator's rule on calls to a provider (OpenWOP host contract
// §5.8).
type PolicyMode string

// The modes, as the discovery document names them.
const (
	// Disabled: the provider is not called.
	Disabled PolicyMode = "disabled"
	// Optional: without a rule.
	Optional PolicyMode = "optional"
	// Required: the provider is called only with the tenant's own key.
	Required PolicyMode = "required"
	// Restricted: only some models of the provider are called.
	Restricted PolicyMode = "restricted"
)

// PolicyModes returns the modes of a rule.
func PolicyModes() []PolicyMode { return []PolicyMode{Disabled, Optional, Required, Restricted} }
