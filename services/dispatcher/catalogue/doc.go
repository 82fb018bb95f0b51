// Package catalogue says what models can do, how much they take, and what they
// cost (OpenWOP envelope contract §16.3: how the host knows is its own matter).
//
//	models.json   the built-in data: models of the vendors, and rules for the
//	              models that people serve themselves
//	Parse         reads a document of the same form, strictly
//	With          lays one over another: an operator's over the built-in one
//	Lookup        finds a model by its name, an alias, a snapshot; then by a rule
//
// There are three answers to whether a model can do something: it can, it cannot,
// and nobody has said. A figure that is not known is left out, here and in the
// data; nothing is filled in for it.
package catalogue
