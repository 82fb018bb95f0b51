// Package catalogue describes the capabilities, limits and prices of models (OpenWOP envelope
// contract §16.3: how the host knows them is its own matter).
//
//	models.json   the built-in data: models of the vendors, and rules for the
//	              models that people serve themselves
//	Parse         reads a document of the same form, strictly
//	With          lays one over another: an operator's over the built-in one
//	Lookup        finds a model by its name, an alias, a snapshot; then by a rule
//
// A capability is present, absent or unknown. Unknown figures are omitted, here and in the data;
// nothing is assumed for them.
package catalogue
