// Package prompt makes prompts of templates: named, versioned texts with {{variables}}
// (OpenWOP envelope contract §19.2).
//
// A composition has two faces. What is sent to the model has the real values of
// secrets in it; what is told of it in an event has marks in their place, and its hash
// is of that. The package is pure: whoever composes brings the values.
package prompt
