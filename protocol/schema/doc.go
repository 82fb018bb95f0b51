// Package schema compiles and applies JSON Schema 2020-12, and checks schemas
// for the subset that structured-output modes of model providers understand.
//
//	Compile   bytes -> *Schema, or why not; nothing is ever loaded from elsewhere
//	Validate  bytes -> []Violation that never repeat a value of the document
//	Lint      bytes -> []Finding of the Tier-1 static check
//
// Schemas and documents both come from outside: tenants register kinds and
// definitions, models write payloads. So either is bounded in size, depth,
// numbers, patterns and in the number of checks it can cause, before the work
// is done (OpenWOP envelope contract §4, §20, §26).
package schema
