// Package expr compiles and evaluates the expressions of workflows: edge conditions, input ports,
// and the conditional and loop nodes.
//
// The language is CEL (https://cel.dev) with its standard library and optional values, over JSON.
// Expressions are deterministic: they have no side effects, clock or randomness, and members of
// objects are visited in name order. Cost is limited at compilation and at evaluation.
//
// Errors name the problem and its position, and never contain a value.
package expr
