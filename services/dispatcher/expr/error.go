package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"waybill.dev/waybill/protocol/suggest"
)

// Error is why an expression is invalid or failed. It can contain text of the expression's author,
// and never a value.
type Error struct {
	// Line and Column are the position in the source, from 1; 0 if unknown.
	Line, Column int
	Message      string
}

// Error formats the message with its position.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

func newError(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// tooMuchWork is the message of an evaluation stopped for its work.
const tooMuchWork = "work limit exceeded"

// cancelWork stops an evaluation immediately. An error would not: operators such as || continue
// after one.
func cancelWork() ref.Val {
	panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: tooMuchWork})
}

// compileError returns the first issue; later ones are often its consequences.
func compileError(scope Scope, source string, iss *cel.Issues) *Error {
	first := iss.Errors()[0]
	e := &Error{Line: first.Location.Line(), Column: first.Location.Column() + 1, Message: oneLine(first.Message)}
	if e.Line < 1 {
		e.Line, e.Column = 0, 0
	}
	for _, sign := range []string{"recursion", "node count exceeds", "nesting depth"} {
		if strings.Contains(e.Message, sign) {
			return newError("the expression is too large: written out it may have %d parts, %d deep; compute some of it in a node before", maxNodes, maxDepth)
		}
	}
	if name, undeclared := strings.CutPrefix(e.Message, "undeclared reference to '"); undeclared {
		name, _, _ = strings.Cut(name, "'")
		e.Message = strings.TrimSuffix(e.Message, " (in container '')")
		if near := suggest.Names(name, rootsOf[scope], 1); len(near) > 0 {
			e.Message += "; did you mean " + near[0] + "?"
		}
		e.Message += "; an expression here sees " + scope.rootNames()
	}
	if remedy := dashedName(source, e.Message); remedy != "" {
		e.Message += "; " + remedy
		return e
	}
	if remedy := foreignSyntax(source); remedy != "" {
		e.Message += "; " + remedy
	}
	return e
}

// dashed is a member whose name has a dash, which is a minus.
var dashed = regexp.MustCompile(`\b(variables|inputs|outputs|nodes)\.([A-Za-z_]\w*(?:-[A-Za-z_]\w*)+)`)

// dashedName returns the remedy for a name with a dash that does not compile; empty if there is none.
func dashedName(source, message string) string {
	m := dashed.FindStringSubmatch(texts.ReplaceAllString(source, "''"))
	if m == nil || !strings.Contains(message, "undeclared reference") && !strings.Contains(message, "'_-_'") {
		return ""
	}
	return fmt.Sprintf("a dash in a name is a minus; write %s[%q]", m[1], m[2])
}

// texts are the string literals of an expression, roughly.
var texts = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// foreign are signs of other languages, with what to write instead.
var foreign = []struct {
	sign   *regexp.Regexp
	remedy string
}{
	{regexp.MustCompile(`\{\{`), "expressions have no placeholders; write variables.NAME"},
	{regexp.MustCompile(`\$\.|\$\{`), "write variables.NAME, without a dollar sign"},
	{regexp.MustCompile(`[=!]==`), "compare with == and !="},
	{regexp.MustCompile(`[^=!<>]=[^=]`), "compare with =="},
	{regexp.MustCompile(`(?i)\s(and|or)\s`), "combine conditions with && and ||"},
	{regexp.MustCompile(`(?i)\sis\s+(not\s+)?(null|none|nil|undefined)\b`), "compare with null: x != null, x == null"},
	{regexp.MustCompile(`(?i)(^|\s|\()not\s`), "negate with !"},
	{regexp.MustCompile(`[^&]&[^&]|[^|]\|[^|]`), "combine conditions with && and ||"},
	{regexp.MustCompile(`\.(startswith|starts_with|endswith|ends_with)\(`), "the functions are startsWith and endsWith"},
	{regexp.MustCompile(`(?i)\.(toLowerCase|toUpperCase|lower|upper|lowerAscii)\(`), "x.matches('(?i)^bug$') compares without regard to case"},
	{regexp.MustCompile(`\b(len|length|count)\(`), "size(x) is the length of a text, a list or an object"},
	{regexp.MustCompile(`\.(includes|indexOf|include)\(`), "x.contains(y) searches a text, y in x a list"},
	{regexp.MustCompile(`(?i)(^|[^.\w])(lower|upper|lowercase|uppercase|toLower|toUpper)\(`), "x.matches('(?i)^bug$') compares without regard to case"},
	{regexp.MustCompile(`(^|[^.\w])(contains|startsWith|endsWith|matches)\(`), "functions of texts follow the text: x.contains(y), x.startsWith(y), x.endsWith(y), x.matches(pattern)"},
	{regexp.MustCompile(`(?i)(^|[^.\w])(now|today|date|time|currentTime)\(`), "there is no clock, because a replay must give the same; pass the time as an input of the run"},
	{regexp.MustCompile(`\.test\(`), "x.matches(pattern) searches a text"},
	{regexp.MustCompile(`\b(True|False|None|undefined|nil)\b`), "the literals are true, false and null"},
}

// foreignSyntax returns the remedy for the first sign of another language; empty if there is none.
func foreignSyntax(source string) string {
	source = texts.ReplaceAllString(source, "''")
	for _, f := range foreign {
		if f.sign.MatchString(source) {
			return f.remedy
		}
	}
	return ""
}

// maxMessage limits a message of the compiler, which lists the expected tokens.
const maxMessage = 300

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "..."
	}
	return s
}

// classes map errors of an evaluation by parts of CEL's message. The messages themselves may
// contain values.
var classes = []struct{ sign, message string }{
	{
		"no such key",
		"an object has no member of that name; has(x.name) asks for one, x[?'name'].orValue(y) has a fallback",
	},
	{"no such attribute", "a name has no value here"},
	{"index out of", "a list has no element of that index; size(x) is the number of elements"},
	{"division by zero", "division by zero"},
	{"modulus by zero", "modulus by zero"},
	{"overflow", "a number is out of range"},
	{"range", "a number is out of range"},
	{"conversion error", "a value cannot be converted to the type that is asked for"},
	{"strconv", "a text is not a number"},
	{"cannot convert", "a value cannot be converted to the type that is asked for"},
	{"optional.none() dereference", "an optional value is absent; give it a fallback with orValue"},
	{
		"no such overload",
		"an operator or a function is given values of types it does not take; double(x), int(x) and string(x) convert",
	},
}

// evalError returns the class of an error and its position, without a value.
func evalError(err error, ast *cel.Ast) *Error {
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Message == tooMuchWork:
		return newError("comparing, holding or matching so large values exceeds the limit of an expression")
	case errors.As(err, &cancelled):
		return newError("the evaluation costs more than %d steps", MaxCost)
	}
	e := &Error{Message: "the expression cannot be evaluated over the values it is given"}
	var at *types.Err
	if errors.As(err, &at) && ast != nil {
		if loc := ast.NativeRep().SourceInfo().GetStartLocation(at.NodeID()); at.NodeID() > 0 && loc.Line() > 0 {
			e.Line, e.Column = loc.Line(), loc.Column()+1
		}
	}
	text := err.Error()
	for _, c := range classes {
		if strings.Contains(text, c.sign) {
			e.Message = c.message
			break
		}
	}
	return e
}
