// Package archtest checks the rules of the tree: allowed imports, names of packages, length of
// files. It has tests only. A broken rule is printed as the chain of imports that breaks it.
//
//	cmd/waybill ──► internal/cli ──► internal/host ──► services/* ──► internal/* ──► protocol ──► standard library
//	                                                       └────────► proto/gen      (service.go, gRPC handlers, codecs)
package archtest
