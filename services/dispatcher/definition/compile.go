package definition

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/expr"
)

// Rules a compileProblem can name beside those of package workflow.
const (
	RuleExpression = "expression"
	RuleRegex      = workflow.RuleRegex
)

// Flow is a definition's data flow and control flow. It is safe for concurrent use.
type Flow struct {
	conditions map[string]*Condition           // by edge id
	ports      map[string]map[string]*compiled // by node id and port

	mu    sync.Mutex // guards nodes
	nodes map[portSource]*compiled
}

// compiled is an expression, or why it is none.
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

// Compile makes the flow of a sound definition, and tells what in it cannot be
// used. The flow is made all the same: a definition that an older host took in is
// still there, and what is wrong fails the node it is about.
func Compile(def *workflow.Definition) (*Flow, []workflow.Problem) {
	f := &Flow{conditions: map[string]*Condition{}, ports: map[string]map[string]*compiled{}, nodes: map[portSource]*compiled{}}
	var found []workflow.Problem
	for i := range def.Edges {
		e := &def.Edges[i]
		if e.Condition == nil {
			continue
		}
		c, err := CompileCondition(e.Condition, expr.Condition, "outputs")
		f.conditions[e.ID] = c
		if err != nil {
			found = append(found, compileProblem(conditionPath(e.Condition, "/edges/"+strconv.Itoa(i)+"/condition"), err))
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
			found = append(found, compileProblem(path+escape(port)+"/expression", err))
		}
	}
	return found
}

// escape writes a name as a token of a JSON pointer.
func escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// conditionPath points at the member that is wrong.
func conditionPath(c *workflow.EdgeCondition, path string) string {
	if c.Type == workflow.ConditionRegex {
		return path + "/right"
	}
	return path + "/expression"
}

func compileProblem(path string, err error) workflow.Problem {
	rule := RuleExpression
	if strings.HasSuffix(path, "/right") {
		rule = RuleRegex
	}
	return workflow.Problem{Path: path, Rule: rule, Message: err.Error()}
}

// Condition is the condition of an edge; nil: it always carries.
func (f *Flow) Condition(edgeID string) *Condition {
	if f == nil {
		return nil
	}
	return f.conditions[edgeID]
}

// errNoFlow is a mistake of the host's: a plan without the flow of its definition.
var errNoFlow = errors.New("the expression was not compiled")

// Port is the expression of a node's port.
func (f *Flow) Port(nodeID, port string) (*expr.Program, error) {
	if f == nil || f.ports[nodeID][port] == nil {
		return nil, errNoFlow
	}
	c := f.ports[nodeID][port]
	return c.program, c.err
}

// Expression compiles an expression of a node's config, once for the definition.
// What a definition can ask for is bounded by what it holds.
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

// objectValue is a short name for what ports and variables are.
type objectValue = map[string]json.RawMessage
