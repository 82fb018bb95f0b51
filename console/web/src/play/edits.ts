// What the playground and edited forks change of a node: forms for its config and its values, and the changes that result.
import { isObject, stringifyJson, type Json } from "../api/json";
import { record, text } from "../ladder/events";
import type { Entries, Schema } from "../workflows/form";
import { collect } from "../workflows/form";

export type Members = { [name: string]: Json };

/** Describes a value by its own shape, so that a form can show it. */
export function schemaOf(value: Json): Schema {
  if (typeof value === "string") return { type: "string" };
  if (typeof value === "boolean") return { type: "boolean" };
  if (isObject(value)) {
    const members = Object.entries(value);
    if (members.length === 0) return { type: "object" };
    // An empty text, or a value of unknown type, may stay empty.
    return { type: "object", properties: Object.fromEntries(members.map(([name, v]) => [name, schemaOf(v)])), required: members.filter(([, v]) => v !== "" && v !== null).map(([name]) => name) };
  }
  if (Array.isArray(value)) {
    const kinds = new Set(value.map((v) => stringifyJson(schemaOf(v) as Json)));
    return kinds.size === 1 ? { type: "array", items: schemaOf(value[0] as Json) } : { type: "array" };
  }
  return value === null ? {} : { type: "number" };
}

/** The values of ports as the fields of one object. */
export const portsSchema = (ports: Members): Schema => ({ ...schemaOf(ports), type: "object", properties: record(schemaOf(ports).properties) });

const prompts: { [name: string]: Schema } = {
  system: { type: "string", title: "System text" },
  prompt: { type: "string", title: "Prompt", description: "{{name}} inserts the port or variable of that name." },
};
const models: { [name: string]: Schema } = {
  provider: { type: "string", title: "Provider" },
  model: { type: "string", title: "Model" },
  temperature: { type: "number", title: "Temperature", minimum: 0 },
  maxTokens: { type: "integer", title: "Limit of tokens", minimum: 1 },
};

/** The form for the config of a node that calls a model. Types of packs have the members that they are given. */
export function configSchema(typeId: string, config: Members, kinds: readonly string[]): Schema {
  const asked = text(config.envelopeType);
  const all = asked === undefined || kinds.includes(asked) ? kinds : [asked, ...kinds];
  switch (typeId) {
    case "core.ai.callPrompt":
      return { type: "object", properties: { ...prompts, ...models, envelopeType: { enum: all, title: "Kind of the answer" } } };
    case "core.ai.structuredOutput":
      return { type: "object", properties: { ...prompts, ...models, outputSchema: { type: "object", title: "Schema of the answer" } } };
  }
  const known = { ...prompts, ...models };
  const names = [...Object.keys(known).filter((name) => config[name] !== undefined), ...Object.keys(config).filter((name) => !Object.hasOwn(known, name))];
  return { type: "object", properties: Object.fromEntries(names.map((name) => [name, known[name] ?? leaf(config[name] as Json)])) };
}

// A member that is an object is entered as JSON: it may have members that this value lacks.
const leaf = (value: Json): Schema => (isObject(value) ? { type: "object" } : Array.isArray(value) ? { type: "array" } : schemaOf(value));

/** The template that a text comes from, if it does not come from the config. */
export function templateOf(config: Members, member: "system" | "prompt"): string | undefined {
  const ref = member === "system" ? config.systemPromptRef : (config.userPromptRef ?? config.promptId);
  return text(ref) ?? text(record(ref).templateId);
}

export type Edit = { config?: Members; inputs?: Members };
export type Written = { edit: Edit; wrong: Map<string, string> };

const references = { system: ["systemPromptRef"], prompt: ["userPromptRef", "promptId"] } as const;

/** The members of a config that a form changes. null removes one. */
export function configChanges(schema: Schema, entries: Entries, config: Members): { changes: Members; wrong: Map<string, string> } {
  const { value, wrong } = collect(schema, entries, "", "");
  const now = record(value) as Members;
  const changes: Members = {};
  for (const name of Object.keys(record(schema.properties))) {
    const before = config[name];
    const after = now[name];
    if (after === undefined ? before !== undefined && before !== "" : before === undefined || stringifyJson(after) !== stringifyJson(before)) changes[name] = after ?? null;
  }
  // A text of the node's own replaces the template.
  for (const [name, refs] of Object.entries(references)) {
    if (typeof changes[name] === "string") for (const ref of refs) if (config[ref] !== undefined) changes[ref] = null;
  }
  return { changes, wrong };
}

/** The ports whose values a form changes. */
export function portChanges(schema: Schema, entries: Entries, ports: Members): { changes: Members; wrong: Map<string, string> } {
  const { value, wrong } = collect(schema, entries, "", "");
  const now = record(value) as Members;
  return { changes: Object.fromEntries(Object.entries(now).filter(([name, v]) => ports[name] === undefined || stringifyJson(v) !== stringifyJson(ports[name]))), wrong };
}

/** A config with changes applied, as the host does. */
export function patched(config: Members, changes: Members): Members {
  const out = { ...config };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete out[name];
    else out[name] = value;
  }
  return out;
}

/** A definition whose node has other settings; undefined if it has no such node. */
export function withConfig(definition: Members, nodeId: string, changes: Members): Members | undefined {
  if (!Array.isArray(definition.nodes)) return undefined;
  let found = false;
  const nodes = definition.nodes.map((n) => {
    if (!isObject(n) || n.id !== nodeId) return n;
    found = true;
    return { ...n, config: patched(isObject(n.config) ? n.config : {}, changes) };
  });
  return found ? { ...definition, nodes } : undefined;
}
