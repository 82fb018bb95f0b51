// Package judge holds JSON values against a compiled schema and says what is wrong
// with them, within a budget.
//
// The library that compiles schemas also validates, but it cannot be stopped: it
// builds an error for whatever fails before it gives any, and a schema of a few
// kilobytes can have it compare one list a thousand times. Here each step is paid
// for before it is taken, so that neither a schema nor a document decides how long
// it takes.
//
//	program.go     a schema, made ready
//	run.go         one value under one schema, and the budget
//	inplace.go     the keywords that apply other schemas to the same value
//	object.go array.go scalar.go   the keywords of one kind of value
//	tag.go         which branches of a union a value cannot mean
//	equal.go numeric.go            when values are the same
//	finding.go union.go describe.go   what is said about failures
package judge
