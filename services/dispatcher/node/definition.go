package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// Rules of warnings.
const (
	RuleNeverRuns = "never-runs"
	RuleUnlinked  = "unlinked"
	RulePort      = "port"
	RuleNoTimeout = "timeout"
	RuleOverlap   = "overlap"
	RuleNotBefore = "not-before"
)

// maxFound limits the problems reported of one definition.
const maxFound = 64

// maxExpressions and maxText limit the expressions of a definition together, because they are
// compiled at registration.
const (
	maxExpressions = 1000
	maxText        = 64 << 10
)

// Review checks a valid definition. Problems always fail: conditions, expressions, and configs of
// types with a Lint. Warnings can run but are probably mistakes. Types that are not in the catalog
// are skipped. models is the model catalogue; nil uses the built-in one.
func (c Catalog) Review(def *workflow.Definition, models *catalogue.Catalogue) (problems, warned []workflow.Problem) {
	if n, size := c.countExpressions(def); n > maxExpressions || size > maxText {
		return []workflow.Problem{{Rule: RuleExpression, Message: fmt.Sprintf(
			"the definition has %d expressions of %d bytes together, want at most %d of %d; split the workflow", n, size, maxExpressions, maxText)}}, nil
	}
	compiled, found := definition.Compile(def)
	for i, n := range def.Nodes {
		t, known := c[n.TypeID]
		if known && t.Class != Effect && n.OnUnknownOutcome() == workflow.OutcomeAsk {
			found = append(found, workflow.Problem{
				Path: nodePath(i) + "/settings/onUnknownOutcome", Rule: workflow.RuleUnknownOutcome,
				Message: "nodes of type " + n.TypeID + " make no call, so there is nothing to ask; remove the setting",
			})
		}
		if !known {
			continue
		}
		for _, p := range t.LintConfig(n.Config) {
			p.Path = nodePath(i) + "/config" + p.Path
			found = append(found, p)
		}
	}
	found = append(found, c.lintPorts(def)...)
	refused, unsure, _ := c.reviewSchemas(def, models)
	return sortProblems(append(found, refused...)), sortProblems(append(c.warnings(def, compiled), unsure...))
}

// countExpressions counts the expressions of a definition and their bytes.
func (c Catalog) countExpressions(def *workflow.Definition) (n, size int) {
	count := func(source string) {
		if source != "" {
			n, size = n+1, size+len(source)
		}
	}
	for _, e := range def.Edges {
		if e.Condition != nil {
			count(e.Condition.Expression)
		}
	}
	for _, d := range def.Nodes {
		for _, pv := range d.Inputs {
			count(pv.Expression)
		}
		if t := c[d.TypeID]; t.Lint != nil {
			cfg, _ := configMembers(t.Configure(d.Config))
			for _, name := range []string{"expression", "until", "condition"} {
				source, isText := strictjson.String(cfg[name])
				if !isText {
					source = string(cfg[name])
				}
				count(source)
			}
		}
	}
	return n, size
}

func sortProblems(found []workflow.Problem) []workflow.Problem {
	slices.SortStableFunc(found, func(a, b workflow.Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule))
	})
	return found[:min(len(found), maxFound)]
}

func (c Catalog) warnings(def *workflow.Definition, compiled *definition.Flow) []workflow.Problem {
	w := &warnings{types: c, def: def, flow: compiled, graph: workflow.Compile(def), at: map[string]int{}}
	for i := range def.Nodes {
		w.at[def.Nodes[i].ID] = i
	}
	w.checkReachable()
	w.checkEdges()
	w.checkReasoning()
	for i := range def.Nodes {
		w.checkNode(i)
	}
	return sortProblems(w.found)
}

type warnings struct {
	types Catalog
	def   *workflow.Definition
	flow  *definition.Flow
	graph *workflow.Graph
	at    map[string]int // index of a node by id
	found []workflow.Problem
}

func (w *warnings) add(path, rule, message string) {
	w.found = append(w.found, workflow.Problem{Path: path, Rule: rule, Message: message})
}

func nodePath(i int) string { return "/nodes/" + strconv.Itoa(i) }

// checkReachable finds nodes that no run starts, and nodes without incoming edges in a workflow
// that has a start node.
func (w *warnings) checkReachable() {
	never := map[int]bool{}
	starts := slices.ContainsFunc(w.def.Nodes, func(n workflow.Node) bool { return n.TypeID == TypeStart })
	for i, s := range w.graph.Steps {
		total, dead := 0, 0
		for _, l := range s.In {
			if l.Back {
				continue
			}
			total++
			if never[l.Step] {
				dead++
			}
		}
		path := nodePath(w.at[s.Node.ID])
		switch {
		case s.Node.Disabled:
			never[i] = true
		case total > 0 && total == dead && s.Rule != workflow.AllComplete && s.Rule != workflow.NoneFailed:
			never[i] = true
			w.add(path, RuleNeverRuns, "no run gets to this node: all that leads to it is disabled; enable one of those nodes, or remove this one")
		case len(s.In)+len(s.Out) == 0 && len(w.graph.Steps) > 1:
			w.add(path, RuleUnlinked, "no edge touches this node: it runs on its own as soon as the run starts; add an edge if it is to wait")
		case total == 0 && starts && s.Node.TypeID != TypeStart:
			w.add(path, RuleUnlinked, "no edge leads to this node: it starts with the run, at the same time as "+TypeStart+"; add an edge if it has to wait")
		}
	}
}

// checkEdges finds inputs filled by several edges.
func (w *warnings) checkEdges() {
	filled := map[[2]string]int{}
	for i, e := range w.def.Edges {
		path := "/edges/" + strconv.Itoa(i)
		outputs := w.outputsOf(e.SourceNodeID)
		into := [2]string{e.TargetNodeID, e.TargetInput}
		first, taken := filled[into]
		if taken && isUnconditional(e) && isUnconditional(w.def.Edges[first]) && len(outputs) > 0 {
			w.add(path+"/targetInput", RuleOverlap, "edge "+w.def.Edges[first].ID+" fills this input, too, and the last edge by id wins; give each its own targetInput")
		}
		if !taken {
			filled[into] = i
		}
	}
}

// isUnconditional reports whether an edge carries whenever its target starts. Of exclusive
// branches, one at most does.
func isUnconditional(e workflow.Edge) bool {
	return e.Condition == nil && e.TriggerRule == workflow.AllSuccess
}

// outputsOf returns the known output ports of a node; nil if unknown.
func (w *warnings) outputsOf(id string) []string {
	i, ok := w.at[id]
	if !ok {
		return nil
	}
	return w.types[w.def.Nodes[i].TypeID].Outputs
}

// checkNode finds connections to ports that need not be filled yet, and settings without effect.
func (w *warnings) checkNode(i int) {
	n := &w.def.Nodes[i]
	if t, known := w.types[n.TypeID]; known && t.Class != Effect && n.Timeout() > 0 {
		w.add(nodePath(i)+"/settings/timeoutMs", RuleNoTimeout, "only nodes that make external calls have a timeout; nodes of type "+n.TypeID+" do not")
	}
	if t, known := w.types[n.TypeID]; known && t.Class != Effect && n.OnUnknownOutcome() != workflow.OutcomeByType && n.OnUnknownOutcome() != workflow.OutcomeAsk {
		w.add(nodePath(i)+"/settings/onUnknownOutcome", workflow.RuleUnknownOutcome, "nodes of type "+n.TypeID+" make no call, so the setting has no effect")
	}
	if t, known := w.types[n.TypeID]; known && !t.AsksModel() && n.HasQuestions() {
		w.add(nodePath(i)+"/settings/questions", workflow.RuleQuestions, "only models ask questions; nodes of type "+n.TypeID+" call none, so the setting has no effect")
	}
	before := w.ancestors(n.ID)
	for _, port := range slices.Sorted(maps.Keys(n.Inputs)) {
		pv, path := n.Inputs[port], nodePath(i)+"/inputs/"+jsonpointer.Escape(port)
		switch pv.Type {
		case workflow.PortConnection:
			w.checkBefore(path+"/nodeId", pv.NodeID, before)
		case workflow.PortExpression:
			p, err := w.flow.Port(n.ID, port)
			if err != nil {
				continue // a problem instead of a warning
			}
			for _, id := range p.Reads()["nodes"].Names {
				w.checkBefore(path+"/expression", id, before)
			}
		case workflow.PortStatic, workflow.PortVariable:
		}
	}
}

// checkBefore warns if a node reads another one that may not have completed.
func (w *warnings) checkBefore(path, id string, before map[string]bool) {
	if _, known := w.at[id]; !known {
		w.add(path, RuleNotBefore, "no node is called "+strconv.Quote(id))
	} else if !before[id] {
		w.add(path, RuleNotBefore, "no edge leads from node "+id+" to here, so it need not have completed; add one")
	}
}

// ancestors returns the nodes from which edges lead to a node.
func (w *warnings) ancestors(id string) map[string]bool {
	out := map[string]bool{}
	i, ok := w.graph.Lookup(id)
	if !ok {
		return out
	}
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for _, l := range w.graph.Steps[queue[0]].In {
			if source := l.Edge.SourceNodeID; !out[source] {
				out[source] = true
				queue = append(queue, l.Step)
			}
		}
	}
	return out
}
