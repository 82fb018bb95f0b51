// Package projection converts a payload schema to the dialect of a vendor's strict
// structured-output mode, and converts the answer back.
//
//	Compile   a schema -> the vendor's schema, or why it is not expressible
//	Restore   an answer under the projection -> the value of the original schema
//	Lift      the reverse: a value of the original schema -> the answer
//	LintFor   checks a schema against the keywords of a vendor
//
// A projection never excludes a valid value: a rule without a vendor keyword becomes a sentence of
// the description, an optional member becomes nullable, an open object becomes text. The restored
// answer must therefore still be validated against the schema (OpenWOP envelope contract §5, §20).
package projection
