package lint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// isSet reports whether an object has a member that is not null.
func isSet(object json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(object, &members) == nil && len(members[name]) > 0 && string(members[name]) != "null"
}

// checkDocument finds parts of the definition that this host does not carry out.
func (l *linter) checkDocument() {
	for i, t := range l.def.Triggers {
		if t.Type != "manual" && t.IsEnabled() {
			l.problem(fmt.Sprintf("/triggers/%d/type", i), RuleTrigger,
				"this host does not carry out triggers of type %s; remove the trigger or set enabled to false, and start runs with POST /v1/runs, for example from cron", t.Type)
		}
		if t.NodeID != "" {
			if _, known := l.at[t.NodeID]; !known {
				l.problem(fmt.Sprintf("/triggers/%d/nodeId", i), workflow.RuleReference, "no node has this id%s; use one of nodes[].id", meant(t.NodeID, l.nodeIDs()))
			}
		}
	}
	for i := range l.def.Nodes {
		if t := l.Types[l.def.Nodes[i].TypeID]; t.AsksModel() {
			l.checkShort("/settings/timeout", l.def.Settings.TimeoutMillis, true)
			break
		}
	}
	l.warnings = append(l.warnings, Lacking(l.def, l.Types)...)
	if most := l.def.Settings.MaxLoopbackIterations; most > node.MaxLoopIterations {
		l.warn("/settings/maxLoopbackIterations", node.RuleLimit, "is %d; a loop of this host has at most %d rounds", most, node.MaxLoopIterations)
	}
	if l.def.IsActive != nil && !*l.def.IsActive {
		l.warn("/isActive", RuleNoEffect, "this host starts runs of inactive workflows, too; delete the workflow to prevent runs")
	}
	if s := l.def.Status; s == "inactive" || s == "archived" {
		l.warn("/status", RuleNoEffect, "this host starts runs of workflows of every status; delete the workflow to prevent runs")
	}
	for i, v := range l.def.Variables {
		if v.Required && v.DefaultValue != nil {
			l.warn(fmt.Sprintf("/variables/%d/required", i), RuleNoEffect, "a variable with a default always has a value; remove required or defaultValue")
		}
	}
	l.checkHeader()
	l.checkGroups()
	l.checkOwnSchemas()
	l.checkChannels()
}

// schemaFile ends the addresses of the schema of definitions.
const schemaFile = "/workflow.schema.json"

// checkHeader warns about a blank name, and about the address of the schema of another file.
func (l *linter) checkHeader() {
	if strings.TrimSpace(l.def.Name) == "" {
		l.warn("/name", node.RuleConfig, "is blank; lists show it, so name the workflow")
	}
	if at := textMember(l.def.Raw, "$schema"); strings.Contains(at, "/schemas/") && strings.HasSuffix(at, ".schema.json") && !strings.HasSuffix(at, schemaFile) {
		if other := at[strings.LastIndexByte(at, '/'):]; slices.Contains([]string{"/kind.schema.json", "/pack.schema.json", "/prompt.schema.json"}, other) {
			l.warn("/$schema", RuleNoEffect, "is the schema of other files; that of workflows is %s", strings.TrimSuffix(at, other)+schemaFile)
		}
	}
}

func (l *linter) nodeIDs() []string {
	ids := make([]string, len(l.def.Nodes))
	for i := range l.def.Nodes {
		ids[i] = l.def.Nodes[i].ID
	}
	return ids
}

// checkGroups finds groups of unknown nodes. Editors read them.
func (l *linter) checkGroups() {
	var doc struct {
		Groups []struct {
			ID      string   `json:"id"`
			NodeIDs []string `json:"nodeIds"`
		} `json:"groups"`
	}
	_ = strictjson.Read(l.def.Raw, &doc) // the schema has checked it
	var groups []string
	for i, g := range doc.Groups {
		groups = append(groups, g.ID)
		for k, id := range g.NodeIDs {
			if _, known := l.at[id]; !known {
				l.warn(fmt.Sprintf("/groups/%d/nodeIds/%d", i, k), workflow.RuleReference, "no node has this id%s; use one of nodes[].id", meant(id, l.nodeIDs()))
			}
		}
	}
	for i, n := range l.def.Nodes {
		if n.GroupID != "" && !slices.Contains(groups, n.GroupID) {
			l.warn(fmt.Sprintf("/nodes/%d/groupId", i), workflow.RuleReference, "no group has this id%s; use one of groups[].id", meant(n.GroupID, groups))
		}
	}
}

// checkNoEffect warns about members of a node that this host does not use.
func (l *linter) checkNoEffect(n *workflow.Node, t node.Type, at string) {
	if isSet(n.Agent, "channel") { // the channel decides what is executed (RFC 0082 §B)
		l.report(l.Complete, at+"/agent/channel", workflow.RuleCapability, "this host has no deployments of agents; name a version, or use another host")
	}
	if n.CredentialsRef != "" {
		l.warn(at+"/credentialsRef", RuleNoEffect, "this host reads the name of a key from configurable[\"ai.credentialRef\"] of the run; remove the member")
	}
	for port := range n.OutputSensitivity {
		if t.Outputs != nil && !slices.Contains(t.Outputs, port) {
			l.warn(at+"/outputSensitivity/"+jsonpointer.Escape(port), RulePort, "nodes of type %s have no output port %s%s", n.TypeID, port, meant(port, t.Outputs))
		}
	}
}
