// Package examples holds the workflows that a new host comes with, and the
// envelope kinds they use. They are embedded, so that the binary alone can show
// a run; CI runs them.
package examples

import "embed"

// FS is this folder: one folder an example, with its workflow.json, its input
// and its kinds.
//
//go:embed triage
var FS embed.FS
