// Package schema compiles and applies JSON Schema 2020-12, and checks schemas for the subset that
// the structured-output modes of model providers support.
//
//	Compile   bytes -> *Schema, or an error; nothing is loaded from elsewhere
//	Validate  bytes -> []Violation that never repeat a value of the document
//	Lint      bytes -> []Finding of the Tier-1 static check
//
// Both schemas and documents are untrusted: tenants register kinds and definitions, models write
// payloads. Size, depth, numbers, patterns and the number of checks are therefore limited before
// the work is done (OpenWOP envelope contract §4, §20, §26).
package schema
