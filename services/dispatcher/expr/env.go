package expr

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// Scope says what an expression is for, and with that what it sees.
type Scope int

// The scopes of expressions.
const (
	// Condition is that of an edge: outputs of the edge's source, and variables.
	Condition Scope = iota
	// Port is that of an input port: inputs that the node's edges carry, variables,
	// and the outputs of the nodes that have completed, as nodes.<id>.<port>.
	Port
	// Node is that of a node's config: inputs, which are its ports, and variables.
	Node
	// Item is Node for one of many: item, index, and acc, the value so far.
	Item
)

// Bounds of what an expression may be and cost. They hold on every host alike,
// because a run must come to the same wherever it is carried on.
const (
	// MaxSource bounds the text, in characters.
	MaxSource = 4096
	// maxNodes and maxDepth bound the syntax tree, macros written out.
	maxNodes, maxDepth = 1000, 100
	// maxPattern bounds a compiled pattern, in instructions.
	maxPattern = 1000
	// MaxCost bounds the steps of an evaluation: one for each name, member and call,
	// ten for a list, thirty for an object, and one for every 64 bytes of text that a
	// call is given.
	MaxCost = 50_000
	// maxWork bounds what CEL does not count: comparing, holding and rendering
	// structured values, and matching.
	maxWork = 1 << 22
	// nodeWork is what one value of a structure counts of maxWork.
	nodeWork = 64
	// MaxResult bounds what an expression gives, in bytes of JSON.
	MaxResult = 1 << 20
)

// rootsOf are the roots that expressions of each scope see.
var rootsOf = map[Scope][]string{
	Condition: {"outputs", "variables"},
	Port:      {"inputs", "variables", "nodes"},
	Node:      {"inputs", "variables"},
	Item:      {"item", "index", "acc", "inputs", "variables"},
}

// environments are made on first use; they never change.
var environments = sync.OnceValue(func() map[Scope]*cel.Env {
	out := make(map[Scope]*cel.Env, len(rootsOf))
	for scope, roots := range rootsOf {
		opts := []cel.EnvOption{
			cel.StdLib(cel.StdLibSubset(standard())),
			cel.CustomTypeAdapter(adapter{}),
			cel.OptionalTypes(),
			cel.CrossTypeNumericComparisons(true),
			cel.EnableIdentifierEscapeSyntax(),
			cel.ParserExpressionSizeLimit(MaxSource),
			cel.ParserRecursionLimit(maxDepth),
			cel.ParserErrorRecoveryLimit(4),
			cel.ExpressionNodeLimit(maxNodes),
			cel.ExpressionNestingDepthLimit(maxDepth),
		}
		for _, name := range roots {
			opts = append(opts, cel.Variable(name, typeOf(name)))
		}
		made, err := cel.NewCustomEnv(opts...)
		if err != nil {
			panic("expr: " + err.Error()) // the options are part of the program
		}
		out[scope] = made
	}
	return out
})

// standard is the standard library without what reads the time zones of the machine,
// which differ from host to host: times are in UTC.
func standard() *env.LibrarySubset {
	lib := env.NewLibrarySubset()
	for name, overload := range map[string]string{
		overloads.TimeGetFullYear: overloads.TimestampToYearWithTz, overloads.TimeGetMonth: overloads.TimestampToMonthWithTz,
		overloads.TimeGetDayOfYear: overloads.TimestampToDayOfYearWithTz, overloads.TimeGetDayOfMonth: overloads.TimestampToDayOfMonthZeroBasedWithTz,
		overloads.TimeGetDate: overloads.TimestampToDayOfMonthOneBasedWithTz, overloads.TimeGetDayOfWeek: overloads.TimestampToDayOfWeekWithTz,
		overloads.TimeGetHours: overloads.TimestampToHoursWithTz, overloads.TimeGetMinutes: overloads.TimestampToMinutesWithTz,
		overloads.TimeGetSeconds: overloads.TimestampToSecondsWithTz, overloads.TimeGetMilliseconds: overloads.TimestampToMillisecondsWithTz,
	} {
		lib.AddExcludedFunctions(env.NewFunction(name, &env.Overload{ID: overload}))
	}
	return lib
}

func typeOf(root string) *cel.Type {
	switch root {
	case "item", "acc":
		return cel.DynType
	case "index":
		return cel.IntType
	case "nodes":
		return types.NewMapType(cel.StringType, types.NewMapType(cel.StringType, cel.DynType))
	default:
		return types.NewMapType(cel.StringType, cel.DynType)
	}
}

// rootNames says what an expression of a scope may name.
func (s Scope) rootNames() string { return strings.Join(rootsOf[s], ", ") }
