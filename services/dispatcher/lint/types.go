package lint

import (
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// near returns the known name that an unknown one is probably meant to be; empty if none is close.
func near(name string, known []string) string { return schema.Near(name, known) }

// protocolTypes are node types of the protocol that this host does not have. Definitions with them are
// valid: the creation of a run is rejected (OpenWOP host contract §5.7).
var protocolTypes = []string{
	"core.a2a.invoke", "core.conversationGate", "core.dispatch", "core.orchestrator.supervisor", "core.secret.witness",
}

// protocolPrefixes are the beginnings of node types of the protocol's own tests.
var protocolPrefixes = []string{"conformance.", "core.conformance.", "local.sample.", "vendor.openwop."}

// commonTypes are what other programs call nodes, by the last part of their types in small letters.
var commonTypes = map[string]string{
	"if": node.TypeConditional, "switch": node.TypeConditional, "branch": node.TypeConditional, "condition": node.TypeConditional, "decision": node.TypeConditional,
	"map": node.TypeLoop, "foreach": node.TypeLoop, "for": node.TypeLoop, "repeat": node.TypeLoop, "expression": node.TypeLoop,
	"llm": node.TypeCallPrompt, "prompt": node.TypeCallPrompt, "chat": node.TypeCallPrompt, "completion": node.TypeCallPrompt, "model": node.TypeCallPrompt, "generate": node.TypeCallPrompt,
	"json": node.TypeStructuredOutput, "extract": node.TypeStructuredOutput, "classify": node.TypeStructuredOutput,
	"wait": node.TypeDelay, "sleep": node.TypeDelay, "timer": node.TypeDelay,
	"approval": interrupt.TypeApprovalGate, "approve": interrupt.TypeApprovalGate, "review": interrupt.TypeApprovalGate, "human": interrupt.TypeApprovalGate,
	"question": interrupt.TypeClarificationGate, "form": interrupt.TypeClarificationGate, "clarification": interrupt.TypeClarificationGate,
	"tool": node.TypeMCPCallTool, "http": node.TypeMCPCallTool, "request": node.TypeMCPCallTool, "fetch": node.TypeMCPCallTool, "api": node.TypeMCPCallTool, "mcp": node.TypeMCPCallTool,
	"agent": node.TypeA2ASendMessage, "workflow": node.TypeSubWorkflow, "subflow": node.TypeSubWorkflow, "call": node.TypeSubWorkflow,
	"set": node.TypeSetVariable, "assign": node.TypeSetVariable, "get": node.TypeGetVariable,
	"input": node.TypeStart, "inputs": node.TypeStart, "output": node.TypeEnd, "finish": node.TypeEnd, "join": node.TypeMerge, "error": node.TypeFail,
}

// meantType suggests a node type for an unknown one.
func (l *linter) meantType(id string) string {
	last := strings.ToLower(id[strings.LastIndexByte(id, '.')+1:])
	if t := commonTypes[last]; t != "" {
		return "; did you mean " + t + "?"
	}
	return meant(id, l.Types.IDs())
}

// peerTypes are the types of nodes that call configured peers, with the flag that adds one.
var peerTypes = map[string]string{
	node.TypeMCPCallTool:    "this host has no MCP server; add one with --mcp-server",
	node.TypeA2ASendMessage: "this host has no A2A agent; add one with --a2a-agent",
}

func (l *linter) checkUnknownType(id, path string) {
	isProtocol := slices.Contains(protocolTypes, id) ||
		slices.ContainsFunc(protocolPrefixes, func(p string) bool { return strings.HasPrefix(id, p) })
	switch {
	case isProtocol:
		l.warn(path, RuleType, "this host does not have the node type, so runs are rejected with %s; use another host", fault.CapabilityRequired)
	case peerTypes[id] != "":
		l.report(l.Complete, path, RuleType, "%s", peerTypes[id])
	case strings.HasPrefix(id, "core."):
		l.problem(path, RuleType, "unknown node type%s; node types of the host are %s", l.meantType(id), strings.Join(l.coreTypes(), ", "))
	case l.Complete:
		l.problem(path, RuleType, "this host has no such node type%s; install a pack that has it (--packs), with an implementation in its waybill.json", l.meantType(id))
	default:
		l.warn(path, RuleType, "no built-in node type%s; name the folder of its pack with --packs, or the host with --url", l.meantType(id))
	}
}

func (l *linter) coreTypes() []string {
	return slices.DeleteFunc(l.Types.IDs(), func(id string) bool {
		return !strings.HasPrefix(id, "core.") || strings.HasPrefix(id, "core.conformance.")
	})
}

// checkRunnable applies the checks that the creation of a run makes.
func (l *linter) checkRunnable(n *workflow.Node, t node.Type, at string) {
	if t.Class == node.Spawns {
		if c, bad := node.ParseSubWorkflow(t.Configure(n.Config)); bad == nil && c.WorkflowID == l.def.ID {
			l.problem(at+"/config/workflowId", workflow.RuleReference, "the workflow runs itself without end; name another one")
		}
	}
	if t.Check == nil || !l.Complete {
		return
	}
	bad := t.Check(t.Configure(n.Config))
	if bad == nil {
		return
	}
	path, message := at+"/config", bad.Message
	if rest, ok := strings.CutPrefix(message, "/config"); ok {
		below, text, _ := strings.Cut(rest, ": ")
		path, message = path+below, text
	}
	l.problem(path, node.RuleConfig, "%s", message)
}
