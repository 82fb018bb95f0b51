// Package projection says a payload schema in the words a vendor's strict
// structured-output mode understands, and brings the answer back.
//
//	Compile   a schema -> what the vendor can be held to, or why it cannot be said
//	Restore   an answer under the projection -> the value the schema is about
//	Lift      the other way: a value of the schema -> the answer it would be
//	LintFor   does a schema keep to the words of a vendor?
//
// A projection never refuses what the schema takes: a rule the vendor does not
// know becomes a sentence of the description, an optional member one that may be
// null, an open object text. So the restored answer still has to be validated
// against the schema (OpenWOP envelope contract §5, §20).
package projection
