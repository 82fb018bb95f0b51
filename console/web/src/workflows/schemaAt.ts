// Which parts of a JSON Schema apply at a place of a document, for completion and hints in the editor.
import { Validator } from "@cfworker/json-schema";
import { isObject, type Json } from "../api/json";
import { record, text, texts } from "../ladder/events";
import type { Schema } from "./form";

/** The schemas that apply at a path: more than one with allOf, anyOf or if. */
export function schemasAt(root: Schema, document: Json | undefined, path: readonly (string | number)[]): Schema[] {
  let here = spread(root, root, document);
  let value = document;
  for (const step of path) {
    value = Array.isArray(value) ? value[Number(step)] : isObject(value) ? value[step] : undefined;
    here = here.flatMap((s) => below(s, step)).flatMap((s) => spread(root, s, value));
  }
  return here;
}

function below(schema: Schema, step: string | number): Schema[] {
  if (typeof step === "number") {
    const items = Array.isArray(schema.prefixItems) ? (schema.prefixItems[step] ?? schema.items) : schema.items;
    return isObject(items) ? [items] : [];
  }
  const named = record(schema.properties)[step];
  if (named !== undefined) return isObject(named) ? [named] : [];
  for (const [pattern, s] of Object.entries(record(schema.patternProperties))) if (isObject(s) && new RegExp(pattern, "u").test(step)) return [s];
  return isObject(schema.additionalProperties) ? [schema.additionalProperties] : [];
}

const maxSpread = 12;

// Follows references, and takes the branches that can apply.
function spread(root: Schema, schema: Schema, value: Json | undefined, depth = 0): Schema[] {
  if (depth > maxSpread) return [];
  const out = [schema];
  const more = (s: unknown): void => {
    if (isObject(s)) out.push(...spread(root, s, value, depth + 1));
  };
  const ref = text(schema.$ref);
  if (ref?.startsWith("#/")) more(pointed(root, ref.slice(1)));
  for (const s of list(schema.allOf)) more(s);
  for (const s of [...list(schema.anyOf), ...list(schema.oneOf)]) more(s);
  if (isObject(schema.if)) more(fits(schema.if, value) ? schema.then : schema.else);
  return out;
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

function pointed(root: Schema, pointer: string): unknown {
  let here: unknown = root;
  for (const step of pointer.split("/").slice(1)) here = record(here)[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")];
  return here;
}

function fits(schema: Schema, value: Json | undefined): boolean {
  if (value === undefined) return false;
  try {
    return new Validator(schema, "2020-12").validate(JSON.parse(JSON.stringify(value))).valid;
  } catch {
    return false;
  }
}

export type Member = { name: string; description: string; required: boolean; schema: Schema };

/** The members that an object may have. */
export function membersOf(schemas: readonly Schema[]): Member[] {
  const out = new Map<string, Member>();
  const required = new Set(schemas.flatMap((s) => texts(s.required)));
  for (const s of schemas) {
    for (const [name, m] of Object.entries(record(s.properties))) {
      const known = out.get(name);
      // A later schema may only repeat the name, such as the members of a port.
      if (known && !isObject(m)) continue;
      const schema = { ...known?.schema, ...record(m) };
      out.set(name, { name, description: text(schema.description) ?? "", required: required.has(name), schema });
    }
  }
  return [...out.values()];
}

/** The values that a place may have, as far as a schema lists them. */
export function valuesOf(schemas: readonly Schema[]): Json[] {
  const out: Json[] = [];
  for (const s of schemas) {
    out.push(...(list(s.enum) as Json[]));
    if (s.const !== undefined) out.push(s.const as Json);
    if (s.default !== undefined) out.push(s.default as Json);
    if (s.type === "boolean") out.push(true, false);
  }
  return [...new Map(out.map((v) => [JSON.stringify(v), v])).values()];
}

/** The node types that a schema of workflows has a config for. */
export function nodeTypesOf(root: Schema): { name: string; description: string }[] {
  return Object.entries(record(root.$defs))
    .filter(([name]) => name.startsWith("config:"))
    .map(([name, s]) => ({ name: name.slice("config:".length), description: text(record(s).description) ?? "" }));
}
