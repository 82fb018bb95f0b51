// Package judge validates JSON values against a compiled schema within a budget.
//
// The library that compiles schemas also validates, but without a limit: it builds an error for
// every failure before it returns, and a schema of a few kilobytes can make it compare one list a
// thousand times. In this package each step is paid for in advance, so that neither schema nor
// document determines the running time.
//
//	program.go     a prepared schema
//	run.go         one value under one schema, and the budget
//	inplace.go     keywords that apply other schemas to the same value
//	object.go array.go scalar.go   keywords of one type of value
//	tag.go         branches of a union that a value cannot match
//	equal.go numeric.go            equality and order of values
//	finding.go union.go describe.go   messages about failures
package judge
