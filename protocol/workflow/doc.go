// Package workflow reads workflow definitions: the documents that say which
// nodes a run executes, in which order, and with which data.
//
//	Parse    bytes -> *Definition, or every problem of the document at once
//	Compile  *Definition -> *Graph, the order and the edges as a run needs them
//	Seed     inputs of a run -> its first variables
//
// The package is pure. What it cannot judge, it leaves to the host: whether a
// typeId is registered, whether a capability is offered (OpenWOP host contract
// §5.1-§5.3).
package workflow
