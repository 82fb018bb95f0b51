// Package expr compiles and evaluates the expressions of workflows: those of edge
// conditions, of input ports and of the nodes that decide and repeat.
//
// The language is CEL (https://cel.dev) with its standard library and optional
// values, over JSON. An expression has no side effects, knows no clock and no
// chance, and always gives the same for the same values: members of objects are
// walked in the order of their names. What it may cost is bounded when it is
// compiled and again when it is evaluated, so that the hardest one ends soon.
//
// A message names what is wrong and where, and never repeats a value.
package expr
