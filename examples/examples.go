// Package examples holds the workflows that a new host comes with, the envelope kinds they use, and
// an input for each. They are embedded, so that the binary alone can run them.
//
// Each example is a folder: workflow.json is the definition, kinds/ holds one <kind>.schema.json
// per file, everything else is input or explanation.
package examples

import "embed"

// FS holds the examples, one folder each. Paths are relative to this folder, such as
// triage/workflow.json.
//
//go:embed order triage
var FS embed.FS

// Demo holds the workflows of the demo runs of a new host, and the pack of their node types.
//
//go:embed demo
var Demo embed.FS
