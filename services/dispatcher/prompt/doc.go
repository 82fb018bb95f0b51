// Package prompt renders prompts from templates: named, versioned texts with {{variables}} (OpenWOP
// envelope contract §19.2).
//
// A composition has two forms. The model gets the real values of secrets. The event gets markers
// instead, and its hash is computed from that form. The package is pure: the caller provides the
// values.
package prompt
