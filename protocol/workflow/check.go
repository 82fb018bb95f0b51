package workflow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// check applies the rules that a schema cannot express (OpenWOP host contract §5.1). Members that
// the shape check rejected are empty here and ignored.
func check(d *Definition, found *problems) {
	shapely := func(path string) bool { return !found.touch(path) }
	nodesKnown := len(d.Nodes) > 0 && shapely("/nodes")

	checkUnique(d, found)
	checkNodes(d, found)
	checkVariables(d, found)
	checkChannels(d, found)
	checkSchedule(d, found)
	checkRetention(d, found)
	for i := range d.Edges {
		if c := d.Edges[i].Condition; c != nil && shapely(pointer("edges", i, "condition")) {
			checkCondition(c, pointer("edges", i, "condition"), found)
		}
	}
	if nodesKnown {
		checkReferences(d, found)
		checkCycles(d, found)
	}
	if d.ConfigurableSchema != nil && shapely("/configurableSchema") {
		checkConfigurableSchema(d, found)
	}
}

// checkUnique finds ids used twice.
func checkUnique(d *Definition, found *problems) {
	twice := func(list, member, what string, n int, id func(int) string) {
		first := map[string]int{}
		for i := range n {
			j, used := first[id(i)]
			switch {
			case id(i) == "":
			case used:
				found.add(pointer(list, i, member), RuleUnique, what+" is already used at "+pointer(list, j, member)+"; use unique values")
			default:
				first[id(i)] = i
			}
		}
	}
	twice("nodes", "id", "the node id", len(d.Nodes), func(i int) string { return d.Nodes[i].ID })
	twice("edges", "id", "the edge id", len(d.Edges), func(i int) string { return d.Edges[i].ID })
	twice("triggers", "id", "the trigger id", len(d.Triggers), func(i int) string { return d.Triggers[i].ID })
	twice("variables", "name", "the variable name", len(d.Variables), func(i int) string { return d.Variables[i].Name })
}

// MaxNodeID is the maximum length of a node id, in characters. Ids are part of interrupt tokens,
// addresses and event ids.
const MaxNodeID = 256

// checkNodeIDs finds ids that are too long. Stored definitions may have them.
func checkNodeIDs(d *Definition, found *problems) {
	for i := range d.Nodes {
		if n := utf8.RuneCountInString(d.Nodes[i].ID); n > MaxNodeID {
			found.add(pointer("nodes", i, "id"), RuleMaxLength, fmt.Sprintf("the id has %d characters; want at most %d", n, MaxNodeID))
		}
	}
}

// checkNodes finds members of nodes that are mutually exclusive or out of range.
func checkNodes(d *Definition, found *problems) {
	for i := range d.Nodes {
		agent := members(d.Nodes[i].Agent)
		if agent["version"] != nil && agent["channel"] != nil { // RFC 0082 §A
			found.add(pointer("nodes", i, "agent", "channel"), RuleExclusive, "channel and version are mutually exclusive; keep one")
		}
		if path := pointer("nodes", i); !found.touch(path + "/envelopeContract") {
			checkContract(&d.Nodes[i], path, found)
		}
		checkAttempts(&d.Nodes[i], pointer("nodes", i, "settings"), found)
		checkQuestions(d.Nodes[i].Settings, pointer("nodes", i, "settings"), found)
	}
}

// checkVariables finds defaults of the wrong type.
func checkVariables(d *Definition, found *problems) {
	for i, v := range d.Variables {
		if v.DefaultValue == nil || hasType(v.DefaultValue, v.Type) {
			continue
		}
		found.add(pointer("variables", i, "defaultValue"), RuleValueType,
			"want "+article(v.Type)+", the variable's type, got "+strictjson.KindOf(v.DefaultValue)+"; without a default, remove the member")
	}
}

// checkReferences finds edges and connections to unknown nodes.
func checkReferences(d *Definition, found *problems) {
	ids, known := make([]string, len(d.Nodes)), map[string]bool{}
	for i := range d.Nodes {
		ids[i] = d.Nodes[i].ID
		known[ids[i]] = true
	}
	must := func(id, path string) {
		if id == "" || known[id] {
			return
		}
		found.add(path, RuleReference, "no node has this id"+meant(id, ids)+"use one of nodes[].id")
	}
	for i, e := range d.Edges {
		must(e.SourceNodeID, pointer("edges", i, "sourceNodeId"))
		must(e.TargetNodeID, pointer("edges", i, "targetNodeId"))
	}
	for i := range d.Nodes {
		for _, port := range slices.Sorted(maps.Keys(d.Nodes[i].Inputs)) {
			must(d.Nodes[i].Inputs[port].NodeID, pointer("nodes", i, "inputs", port, "nodeId"))
		}
	}
}

// checkConfigurableSchema compiles the author's schema and stores it.
func checkConfigurableSchema(d *Definition, found *problems) {
	compiled, err := schema.Compile("configurableSchema", d.ConfigurableSchema)
	if err == nil {
		d.configurable = compiled
		return
	}
	path, reason := "", err.Error()
	if e, ok := errors.AsType[*schema.Error](err); ok {
		path, reason = e.Path, e.Reason
	}
	found.add("/configurableSchema"+path, RuleSchema, reason)
}
