// Package lint checks workflow definitions. Registration, `waybill dev` and `waybill workflow lint` use
// this one checker.
//
// Problems are definitions that cannot run, warnings definitions that can run and are probably
// mistakes. A check that needs knowledge of a host which the caller does not have is skipped, or gives
// a warning.
package lint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// Host is what a definition is checked against.
type Host struct {
	// Types are the node types. Without Complete, other vendors' types may exist as well.
	Types node.Catalog
	// Models is the model catalogue; nil uses the built-in one.
	Models *catalogue.Catalogue
	Limits node.Limits
	// Complete means that Types, Providers, Kinds and Prompts are all that the host has.
	Complete bool
	// TestSeams means that runs can replace models by scripts.
	TestSeams bool
	// Providers are the ids of the providers; nil if they are unknown.
	Providers []string
	// Kinds are the names of the envelope kinds; nil if they are unknown.
	Kinds []string
	// KindSchemas are the schemas of their payloads, as far as they are known.
	KindSchemas map[string]json.RawMessage
	// Prompts are the prompt templates; nil without templates.
	Prompts *prompt.Library
	// MaxTimeout is the longest time limit that a node can set for calls of a provider; nil if it is
	// unknown.
	MaxTimeout func(provider string) time.Duration
}

// Report is the result of a check, sorted by path.
type Report struct {
	// Def is nil if the document is not a definition.
	Def *workflow.Definition
	// Problems prevent runs of the definition. Warnings do not.
	Problems, Warnings []workflow.Problem
}

// Check checks a document.
func (h Host) Check(doc []byte) Report {
	r := h.check(doc)
	r.Problems, r.Warnings = atMost(r.Problems), atMost(r.Warnings)
	return r
}

// CheckEdit checks a document with edits of one node of a base. Problems elsewhere that the base has, too,
// are left out: a newer host may find more in a definition that runs.
func (h Host) CheckEdit(base, doc []byte, nodeID string) Report {
	r := h.check(doc)
	if r.Def != nil && len(r.Problems) > 0 {
		at := fmt.Sprintf("/nodes/%d", slices.IndexFunc(r.Def.Nodes, func(n workflow.Node) bool { return n.ID == nodeID }))
		old := h.check(base).Problems
		r.Problems = slices.DeleteFunc(r.Problems, func(p workflow.Problem) bool {
			return p.Path != at && !strings.HasPrefix(p.Path, at+"/") && slices.Contains(old, p)
		})
	}
	r.Problems, r.Warnings = atMost(r.Problems), atMost(r.Warnings)
	return r
}

func atMost(found []workflow.Problem) []workflow.Problem { return found[:min(len(found), maxFound)] }

// check is Check with all problems and warnings.
func (h Host) check(doc []byte) Report {
	def, found := workflow.ParseDraft(doc)
	if len(found) > 0 {
		return Report{Problems: h.checkDraft(def, found)}
	}
	if h.Models == nil {
		h.Models = catalogue.Builtin()
	}
	l := newLinter(h, def)
	var r Report
	r.Def = def
	r.Problems, r.Warnings = h.Types.Review(def, h.Models)
	beyond, void := h.Limits.Review(def)
	l.problems, l.warnings = append(r.Problems, beyond...), append(r.Warnings, void...)
	l.warnings = append(l.warnings, def.UnknownSettings()...)
	l.checkDocument()
	l.checkEdges()
	l.checkRoutes()
	l.checkDecisions()
	l.checkBranches()
	l.checkOrder()
	l.checkUnused()
	for i := range def.Nodes {
		l.checkNode(i)
	}
	l.explainMembers()
	r.Problems, r.Warnings = sorted(l.problems), sorted(l.warnings)
	return r
}

// checkDraft adds the problems of node types and configs to those of a document that is no definition, so
// that its author sees them together.
func (h Host) checkDraft(def *workflow.Definition, found []workflow.Problem) []workflow.Problem {
	if def == nil {
		return found
	}
	l := &linter{Host: h, def: def, problems: found}
	for i, n := range def.Nodes {
		at := fmt.Sprintf("/nodes/%d", i)
		if l.reported(at+"/typeId") || n.TypeID == "" {
			continue
		}
		t, known := h.Types[n.TypeID]
		if !known {
			l.checkUnknownType(n.TypeID, at+"/typeId")
			continue
		}
		for _, p := range t.LintConfig(n.Config) {
			if !l.reported(at + "/config" + p.Path) {
				l.problem(at+"/config"+p.Path, p.Rule, "%s", p.Message)
			}
		}
	}
	l.explainMembers()
	return sorted(l.problems)
}

// explainMembers adds to the problems of unknown members of configs where they belong: to a port of the
// name, or to another type.
func (l *linter) explainMembers() {
	for k, p := range l.problems {
		parts := strings.Split(p.Path, "/")
		if p.Rule != workflow.RuleUnknownMember || len(parts) != 5 || parts[1] != "nodes" || parts[3] != "config" || strings.Contains(p.Message, "did you mean") {
			continue
		}
		i, err := strconv.Atoi(parts[2])
		if err != nil || i >= len(l.def.Nodes) {
			continue
		}
		t := l.Types[l.def.Nodes[i].TypeID].Executes()
		if typesIn[t][parts[4]] != "" || slices.Contains(portsIn[t], parts[4]) {
			l.problems[k].Message = "is an input port: set it under inputs of the node; " + p.Message
		} else if other := otherModelType[t]; slices.Contains(l.Types[other].Members(), parts[4]) {
			l.problems[k].Message = "is a member of " + other + "; " + p.Message
		}
	}
}

// otherModelType pairs the types that call models, which authors take for each other.
var otherModelType = map[string]string{node.TypeCallPrompt: node.TypeStructuredOutput, node.TypeStructuredOutput: node.TypeCallPrompt}

// Rules of problems, in addition to those of packages workflow and node.
const (
	RuleType     = "node-type"
	RuleName     = "name"
	RuleProvider = "provider"
	RuleModel    = "model"
	RulePrompt   = "prompt"
	RuleKind     = "kind"
	RuleTrigger  = "trigger"
	RuleNoEffect = "no-effect"
	RulePort     = node.RulePort
)

// maxFound limits the problems of a report.
const maxFound = 64

func sorted(found []workflow.Problem) []workflow.Problem {
	slices.SortStableFunc(found, func(a, b workflow.Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule))
	})
	return slices.CompactFunc(found, func(a, b workflow.Problem) bool { return a.Path == b.Path && a.Message == b.Message })
}

// linter is one check of a definition.
type linter struct {
	Host
	def *workflow.Definition
	// at are the indexes of the nodes by id.
	at map[string]int
	// ports are the input ports of each node that something fills, by index.
	ports []map[string]bool
	// variables are the names that something sets. If unsure is set, others may exist.
	variables map[string]bool
	unsure    bool
	// inputs are the declared inputs of a run.
	inputs []string
	// outputs are the schemas of outputs that were read, by the index of the node.
	outputs map[int]*document
	// evaluated counts the loops whose first round was evaluated.
	evaluated int
	// next are the targets of the edges by their source; nil before the first use.
	next map[string][]string

	problems, warnings []workflow.Problem
}

func newLinter(h Host, def *workflow.Definition) *linter {
	l := &linter{Host: h, def: def, at: map[string]int{}, ports: make([]map[string]bool, len(def.Nodes)), variables: map[string]bool{}}
	for i := range def.Nodes {
		n := &def.Nodes[i]
		l.at[n.ID], l.ports[i] = i, map[string]bool{}
		for port := range n.Inputs {
			l.ports[i][port] = true
		}
	}
	for _, e := range def.Edges {
		if i, ok := l.at[e.TargetNodeID]; ok {
			l.ports[i][e.TargetInput] = true
		}
	}
	l.collectVariables()
	l.collectInputs()
	return l
}

func (l *linter) problem(path, rule, format string, args ...any) {
	l.problems = append(l.problems, workflow.Problem{Path: path, Rule: rule, Message: sentence(format, args)})
}

func (l *linter) warn(path, rule, format string, args ...any) {
	l.warnings = append(l.warnings, workflow.Problem{Path: path, Rule: rule, Message: sentence(format, args)})
}

// sentence formats a message. A suggestion ends with a question mark, so no semicolon follows it.
func sentence(format string, args []any) string {
	return strings.ReplaceAll(fmt.Sprintf(format, args...), "?; ", "? ")
}

// report adds a problem, or a warning if the host is not known well enough.
func (l *linter) report(certain bool, path, rule, format string, args ...any) {
	if certain {
		l.problem(path, rule, format, args...)
		return
	}
	l.warn(path, rule, format, args...)
}

// reported reports whether there is a problem at or below a path.
func (l *linter) reported(path string) bool {
	return slices.ContainsFunc(l.problems, func(p workflow.Problem) bool { return p.Path == path || strings.HasPrefix(p.Path, path+"/") })
}

// checkNode checks a node.
func (l *linter) checkNode(i int) {
	n, at := &l.def.Nodes[i], fmt.Sprintf("/nodes/%d", i)
	t, known := l.Types[n.TypeID]
	if !known {
		l.checkUnknownType(n.TypeID, at+"/typeId")
		return
	}
	l.checkInputs(n, t, at)
	l.checkNoEffect(n, t, at)
	l.checkSettings(n, t, at)
	l.checkContracts(n, t, at)
	if l.reported(at + "/config") {
		return // what follows reads the config
	}
	l.checkRunnable(n, t, at)
	l.checkStatics(n, at)
	l.checkSchemas(n, at+"/config")
	l.checkValue(n, t, at)
	l.checkGate(n, t, at)
	switch {
	case t.AsksModel():
		if cfg, err := model.ReadConfig(t.Configure(n.Config)); err == nil {
			l.checkModelNode(modelNode{n: n, t: t, i: i, at: at, cfg: cfg})
		}
	default:
		l.checkVariableNode(n, t, at)
	}
}

// meant returns a suggestion, as the end of a message; empty if no known name is close.
func meant(name string, known []string) string {
	if near := near(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
