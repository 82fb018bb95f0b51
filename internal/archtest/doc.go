// Package archtest holds the rules of the tree: who may import whom, how
// packages are called, how long a file may be. It has no code of its own but
// the tests; a broken rule is printed as the chain of imports that breaks it.
//
//	cmd/waybill ──► internal/cli ──► internal/host ──► services/* ──► internal/* ──► protocol ──► standard library
//	                                                       └────────► proto/gen      (service.go, gRPC handlers, codecs)
package archtest
