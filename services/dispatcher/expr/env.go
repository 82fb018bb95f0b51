package expr

import (
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
)

// Scope is the use of an expression, which determines the visible values.
type Scope int

// The scopes of expressions.
const (
	// Condition is an edge's condition: outputs of the edge's source, and variables.
	Condition Scope = iota
	// Port is an input port: inputs carried by the node's edges, variables, and the outputs of
	// completed nodes as nodes.<id>.<port>.
	Port
	// Node is a node's config: inputs, which are its ports, and variables.
	Node
	// Item is Node for one item of a loop: also item, index, and acc, the value so far.
	Item
)

// Limits of expressions. They are equal on every host, because a run must give the same result
// wherever it continues.
const (
	// MaxSource limits the text, in characters.
	MaxSource = 4096
	// maxNodes and maxDepth limit the syntax tree with expanded macros.
	maxNodes, maxDepth = 1000, 100
	// maxPattern limits a compiled pattern, in instructions.
	maxPattern = 1000
	// MaxCost limits the steps of an evaluation: one for each name, member and call, ten for a
	// list, thirty for an object, and one for every 64 bytes of text in a call's arguments.
	MaxCost = 50_000
	// maxWork limits the work that CEL does not count: comparing, building and rendering structured
	// values, and matching.
	maxWork = 1 << 22
	// nodeWork is the work of one value of a structure.
	nodeWork = 64
	// MaxResult limits the result, in bytes of JSON.
	MaxResult = 1 << 20
)

// rootsOf are the names visible in each scope.
var rootsOf = map[Scope][]string{
	Condition: {"outputs", "variables"},
	Port:      {"inputs", "variables", "nodes"},
	Node:      {"inputs", "variables"},
	Item:      {"item", "index", "acc", "inputs", "variables"},
}

// environments are created on first use and never change.
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
			panic("expr: " + err.Error()) // the options are constants
		}
		out[scope] = made
	}
	return out
})

// standard returns the standard library without the functions that use the machine's time zones,
// which differ between hosts. Times are in UTC.
func standard() *env.LibrarySubset {
	lib := env.NewLibrarySubset()
	for name, overload := range map[string]string{
		overloads.TimeGetFullYear:     overloads.TimestampToYearWithTz,
		overloads.TimeGetMonth:        overloads.TimestampToMonthWithTz,
		overloads.TimeGetDayOfYear:    overloads.TimestampToDayOfYearWithTz,
		overloads.TimeGetDayOfMonth:   overloads.TimestampToDayOfMonthZeroBasedWithTz,
		overloads.TimeGetDate:         overloads.TimestampToDayOfMonthOneBasedWithTz,
		overloads.TimeGetDayOfWeek:    overloads.TimestampToDayOfWeekWithTz,
		overloads.TimeGetHours:        overloads.TimestampToHoursWithTz,
		overloads.TimeGetMinutes:      overloads.TimestampToMinutesWithTz,
		overloads.TimeGetSeconds:      overloads.TimestampToSecondsWithTz,
		overloads.TimeGetMilliseconds: overloads.TimestampToMillisecondsWithTz,
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

// rootNames lists the names visible in a scope.
func (s Scope) rootNames() string { return strings.Join(rootsOf[s], ", ") }
