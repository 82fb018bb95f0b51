// A workflow definition, limited to what pages read. Hosts may have older documents, so every member is optional.
import { isObject, type Json } from "../api/json";
import { record, text } from "../ladder/events";
import type { IconName } from "../ui/Icon";

export type Definition = { [name: string]: Json };
export type WorkflowNode = { id: string; typeId: string; name: string; notes?: string | undefined; disabled: boolean; raw: Definition };
export type WorkflowEdge = { id: string; from: string; to: string; label: string };
export type Variable = { name: string; type: string; description?: string | undefined; required: boolean; sensitive: boolean; defaultValue?: Json | undefined };

const list = (value: unknown): Definition[] => (Array.isArray(value) ? value.filter(isObject) : []);

export function nodesOf(definition: Definition): WorkflowNode[] {
  return list(definition.nodes).map((n) => {
    const id = text(n.id) ?? "";
    return { id, typeId: text(n.typeId) ?? "", name: text(n.name) || id, notes: text(n.notes), disabled: n.disabled === true, raw: n };
  });
}

export function edgesOf(definition: Definition): WorkflowEdge[] {
  return list(definition.edges).map((e, i) => ({ id: text(e.id) ?? String(i), from: text(e.sourceNodeId) ?? "", to: text(e.targetNodeId) ?? "", label: edgeLabel(e) }));
}

// What makes an edge different from others: its label or condition, and its rule.
function edgeLabel(e: Definition): string {
  const c = record(e.condition);
  const rule = text(e.triggerRule);
  const parts = [text(e.label) ?? conditionWords(c), rule && rule !== "all_success" ? ruleWords[rule] ?? rule : ""];
  return parts.filter(Boolean).join(" · ");
}

const ruleWords: { [rule: string]: string } = { any_success: "any succeeded", all_complete: "all ended", none_failed: "none failed", any_failed: "on failure" };
const signs: { [type: string]: string } = { equals: "=", notEquals: "≠", contains: "contains", regex: "matches" };

function conditionWords(c: Record<string, unknown>): string {
  const type = text(c.type);
  if (type === undefined) return "";
  if (type === "expression") return text(c.expression) ?? "";
  return `${text(c.left) ?? ""} ${signs[type] ?? type} ${typeof c.right === "string" ? c.right : JSON.stringify(c.right)}`;
}

export function variablesOf(definition: Definition): Variable[] {
  return list(definition.variables).map((v) => ({
    name: text(v.name) ?? "",
    type: text(v.type) ?? "",
    description: text(v.description),
    required: v.required === true,
    sensitive: v.sensitive === true,
    defaultValue: v.defaultValue,
  }));
}

export type NodeKind = "model" | "gate" | "tool" | "time" | "child" | "flow" | "data";

/** The icon of a kind of nodes, and its name. */
export const kindLook: { [kind in NodeKind]: { icon: IconName; word: string } } = {
  model: { icon: "model", word: "model" },
  gate: { icon: "question", word: "question" },
  tool: { icon: "tool", word: "tool" },
  time: { icon: "clock", word: "wait" },
  child: { icon: "child", word: "workflow" },
  flow: { icon: "flow", word: "control" },
  data: { icon: "data", word: "data" },
};

/** Groups node types for icons. Types of packs count as models, because packs are built from model nodes. */
export function kindOf(typeId: string): NodeKind {
  if (typeId.startsWith("core.ai.")) return "model";
  if (/^core\.(approvalGate|clarificationGate|interrupt)/.test(typeId)) return "gate";
  if (/^core\.(mcp|a2a)\./.test(typeId)) return "tool";
  if (typeId === "core.delay") return "time";
  if (typeId === "core.subWorkflow") return "child";
  if (/^core\.(setVariable|getVariable|channelWrite|identity|merge)$/.test(typeId)) return "data";
  return typeId.startsWith("core.") ? "flow" : "model";
}
