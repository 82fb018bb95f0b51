package definition

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// Rules of problems in addition to those of package workflow.
const (
	RuleExpression = "expression"
	RuleRegex      = workflow.RuleRegex
)

// Flow holds the compiled conditions and expressions of a definition. It is safe for concurrent
// use.
type Flow struct {
	conditions map[string]*Condition           // by edge id
	ports      map[string]map[string]*compiled // by node id and port

	mu    sync.Mutex // guards nodes
	nodes map[portSource]*compiled
}

// compiled is a compiled expression, or its error.
type compiled struct {
	program *expr.Program
	err     error
}

// portSource is an expression in the config of a node.
type portSource struct {
	scope   expr.Scope
	boolean bool
	text    string
}

// Compile compiles a valid definition and returns the problems of its expressions. The flow is
// usable even with problems: definitions registered by an older host remain, and each problem fails
// the node it concerns.
func Compile(def *workflow.Definition) (*Flow, []workflow.Problem) {
	f := &Flow{
		conditions: map[string]*Condition{},
		ports:      map[string]map[string]*compiled{},
		nodes:      map[portSource]*compiled{},
	}
	var found []workflow.Problem
	for i := range def.Edges {
		e := &def.Edges[i]
		if e.Condition == nil {
			continue
		}
		c, err := CompileCondition(e.Condition, expr.Condition, "outputs")
		f.conditions[e.ID] = c
		if err != nil {
			found = append(found, newProblem(conditionPath(e.Condition, "/edges/"+strconv.Itoa(i)+"/condition"), err))
		}
	}
	for i := range def.Nodes {
		found = append(found, f.compilePorts(&def.Nodes[i], "/nodes/"+strconv.Itoa(i)+"/inputs/")...)
	}
	return f, found
}

func (f *Flow) compilePorts(n *workflow.Node, path string) (found []workflow.Problem) {
	for _, port := range slices.Sorted(maps.Keys(n.Inputs)) {
		pv := n.Inputs[port]
		if pv.Type != workflow.PortExpression {
			continue
		}
		p, err := expr.Compile(expr.Port, pv.Expression)
		if f.ports[n.ID] == nil {
			f.ports[n.ID] = map[string]*compiled{}
		}
		f.ports[n.ID][port] = &compiled{p, err}
		if err != nil {
			found = append(found, newProblem(path+jsonpointer.Escape(port)+"/expression", err))
		}
	}
	return found
}

// conditionPath returns the path of the invalid member.
func conditionPath(c *workflow.EdgeCondition, path string) string {
	if c.Type == workflow.ConditionRegex {
		return path + "/right"
	}
	return path + "/expression"
}

func newProblem(path string, err error) workflow.Problem {
	rule := RuleExpression
	if strings.HasSuffix(path, "/right") {
		rule = RuleRegex
	}
	return workflow.Problem{Path: path, Rule: rule, Message: err.Error()}
}

// Condition returns the condition of an edge; nil means unconditional.
func (f *Flow) Condition(edgeID string) *Condition {
	if f == nil {
		return nil
	}
	return f.conditions[edgeID]
}

// errNoFlow is a bug of the host: a plan without the flow of its definition.
var errNoFlow = errors.New("the expression was not compiled")

// Port returns the expression of a node's port.
func (f *Flow) Port(nodeID, port string) (*expr.Program, error) {
	if f == nil || f.ports[nodeID][port] == nil {
		return nil, errNoFlow
	}
	c := f.ports[nodeID][port]
	return c.program, c.err
}

// Expression compiles an expression of a node's config, once per definition. The size of the
// definition limits the number of expressions.
func (f *Flow) Expression(scope expr.Scope, text string, boolean bool) (*expr.Program, error) {
	compile := expr.Compile
	if boolean {
		compile = expr.CompileBool
	}
	if f == nil {
		return compile(scope, text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := portSource{scope, boolean, text}
	c := f.nodes[key]
	if c == nil {
		p, err := compile(scope, text)
		c = &compiled{p, err}
		f.nodes[key] = c
	}
	return c.program, c.err
}

// object is the type of ports and variables.
type object = map[string]json.RawMessage
