// Package workflow reads workflow definitions: which nodes a run executes, in which order, and with
// which data.
//
//	Parse    bytes -> *Definition, or every problem of the document in one call
//	Compile  *Definition -> *Graph, the order and the edges for a run
//	Seed     inputs of a run -> its first variables
//
// The package is pure. The host checks the rest: whether a typeId is registered and a capability is
// offered (OpenWOP host contract §5.1-§5.3).
package workflow
