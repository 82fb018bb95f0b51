// A form for a JSON Schema: its fields, what a person has entered, and the value that results.
import { ExactNumber, isObject, parseJson, stringifyJson, type Json } from "../api/json";
import { record, text, texts } from "../ladder/events";
import { variablesOf, type Definition } from "./definition";

export type Schema = { [keyword: string]: unknown };

/**
 * The entries of a form by path. A text is what a control holds; a list is the checked options of a choice, or the keys of
 * the items of an array. A missing entry is empty.
 */
export type Entries = { readonly [path: string]: string | string[] | undefined };

export type Shape =
  | { form: "object"; fields: Named[] }
  | { form: "list"; item: Schema }
  | { form: "leaf" };

/** A field of an object. */
export type Named = { name: string; schema: Schema; required: boolean };

// Deeper values are entered as JSON.
const maxDepth = 4;

/** Returns the parts of a value of this schema. Values without declared parts are leaves. */
export function shapeOf(schema: Schema, depth = 0): Shape {
  if (depth < maxDepth && !Array.isArray(schema.enum)) {
    const properties = record(schema.properties);
    // The form itself is an object, also without fields.
    if (schema.type === "object" && (depth === 0 || Object.keys(properties).length > 0)) {
      const required = texts(schema.required);
      return { form: "object", fields: Object.entries(properties).map(([name, s]) => ({ name, schema: record(s), required: required.includes(name) })) };
    }
    const item = record(schema.items);
    if (schema.type === "array" && text(item.type) !== undefined && !Array.isArray(item.enum)) return { form: "list", item };
  }
  return { form: "leaf" };
}

/** The name of the member of a definition's metadata that describes the inputs for forms. */
export const inputSchemaName = "x-inputSchema";

/** The inputs of a workflow: its variables, with what its input schema adds. */
export function inputSchema(definition: Definition): { schema: Schema; sensitive: Set<string>; examples: Definition[] } {
  const described = resolved(record(record(definition.metadata)[inputSchemaName]));
  const more = record(described.properties);
  const properties: { [name: string]: Schema } = {};
  const required: string[] = [];
  const sensitive = new Set<string>();
  for (const v of variablesOf(definition)) {
    // The type of the variable is what the host checks.
    const schema: Schema = { ...(v.description === undefined ? {} : { description: v.description }), ...record(more[v.name]), ...narrowed(v.type, record(more[v.name]).type) };
    if (v.defaultValue !== undefined) schema.default = v.defaultValue;
    properties[v.name] = schema;
    if (v.required && v.defaultValue === undefined) required.push(v.name);
    if (v.sensitive) sensitive.add(v.name);
  }
  const examples = Array.isArray(described.examples) ? described.examples.filter(isObject) : [];
  return { schema: { ...described, type: "object", properties, required: [...new Set([...required, ...texts(described.required).filter((name) => Object.hasOwn(properties, name) && properties[name]?.default === undefined)])] }, sensitive, examples };
}

// An integer is a number; another type than the variable's cannot be entered.
function narrowed(type: string, described: unknown): Schema {
  return type === "number" && described === "integer" ? { type: "integer" } : { type };
}

/** Replaces references within the document. A schema that contains itself is cut where it does. */
export function resolved(schema: Schema): Schema {
  const walk = (value: unknown, within: readonly string[]): unknown => {
    if (Array.isArray(value)) return value.map((v) => walk(v, within));
    if (!isObject(value)) return value;
    const ref = text(value.$ref);
    if (ref?.startsWith("#/")) {
      if (within.includes(ref)) return {};
      const { $ref: _, ...own } = value;
      return { ...record(walk(at(schema, ref.slice(1)), [...within, ref])), ...own };
    }
    return Object.fromEntries(Object.entries(value).filter(([name]) => name !== "$defs").map(([name, v]) => [name, walk(v, within)]));
  };
  return record(walk(schema, []));
}

function at(document: unknown, pointer: string): unknown {
  let here = document;
  for (const step of pointer.split("/").slice(1)) here = record(here)[step.replaceAll("~1", "/").replaceAll("~0", "~")];
  return here;
}

export const childPath = (path: string, name: string): string => `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;

let nextItem = 0;
export const newItem = (): string => `item-${nextItem++}`;

/** Returns the entries that give a value. */
export function entriesOf(schema: Schema, value: Json | undefined, path: string, depth = 0): Entries {
  if (value === undefined) return {};
  const shape = shapeOf(schema, depth);
  if (shape.form === "object" && isObject(value)) {
    return Object.assign({}, ...shape.fields.map((f) => entriesOf(f.schema, value[f.name], childPath(path, f.name), depth + 1))) as Entries;
  }
  if (shape.form === "list" && Array.isArray(value)) {
    const keys = value.map(() => newItem());
    return Object.assign({ [path]: keys }, ...value.map((v, i) => entriesOf(shape.item, v, childPath(path, keys[i] as string), depth + 1))) as Entries;
  }
  if (Array.isArray(value) && Array.isArray(record(schema.items).enum)) return { [path]: value.map(asOption) };
  if (Array.isArray(schema.enum)) return { [path]: asOption(value) };
  return { [path]: typeof value === "string" && schema.type === "string" ? value : typeof value === "boolean" && schema.type === "boolean" ? String(value) : stringifyJson(value, 2) };
}

/** Writes an option of a choice like its control. */
export const asOption = (o: unknown): string => (typeof o === "string" ? o : stringifyJson(o));

export type Collected = { value: Json | undefined; wrong: Map<string, string>; /** The path of the control for each JSON Pointer of the value. */ paths: Map<string, string> };

/** Collects the value of a form. Empty fields are left out, so that the host uses defaults. */
export function collect(schema: Schema, entries: Entries, path: string, root: string): Collected {
  const wrong = new Map<string, string>();
  const paths = new Map<string, string>();
  const one = (s: Schema, p: string, pointer: string, required: boolean, depth: number): Json | undefined => {
    paths.set(pointer, p);
    const shape = shapeOf(s, depth);
    if (shape.form === "object") {
      const parts: [string, Json][] = [];
      // An optional object without an entry is absent, and its required members with it.
      const begun = required || hasEntries(entries, p);
      for (const f of shape.fields) {
        const value = one(f.schema, childPath(p, f.name), childPath(pointer, f.name), f.required && begun, depth + 1);
        if (value !== undefined) parts.push([f.name, value]);
      }
      return begun ? Object.fromEntries(parts) : undefined;
    }
    if (shape.form === "list") {
      const keys = entries[p];
      if (!Array.isArray(keys) || (keys.length === 0 && !required)) return Array.isArray(keys) || required ? [] : undefined;
      return keys.map((key, i) => one(shape.item, childPath(p, key), childPath(pointer, String(i)), true, depth + 1) ?? null);
    }
    const { value, problem } = leaf(s, entries[p], required);
    if (problem) wrong.set(p, problem);
    return value;
  };
  return { value: one(schema, path, root, true, 0), wrong, paths };
}

const hasEntries = (entries: Entries, path: string): boolean => Object.entries(entries).some(([p, e]) => p.startsWith(`${path}/`) && e !== undefined && e !== "");

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

function leaf(schema: Schema, entry: string | string[] | undefined, required: boolean): { value?: Json; problem?: string } {
  if (Array.isArray(entry)) {
    const options = record(schema.items).enum;
    return { value: (Array.isArray(options) ? options : []).filter((o) => entry.includes(asOption(o))) as Json[] };
  }
  if (Array.isArray(schema.enum)) {
    if (entry === undefined) return required ? { problem: "choose one" } : {};
    const found = schema.enum.find((o) => asOption(o) === entry) as Json | undefined;
    return found === undefined ? { problem: `choose one of ${schema.enum.map(asOption).join(", ")}` } : { value: found };
  }
  if (schema.type === "string") {
    // An entry that was cleared is no value, except in a form that edits a text.
    if (entry === "" && schema["x-emptyText"] === true) return { value: "" };
    if (entry === undefined || entry === "") return required ? { problem: "enter a text" } : {};
    return { value: entry };
  }
  const written = (entry ?? "").trim();
  if (written === "") return required ? { problem: missing(schema.type) } : {};
  switch (schema.type) {
    case "boolean":
      return written === "true" || written === "false" ? { value: written === "true" } : { problem: "choose yes or no" };
    case "integer":
      return /^-?(?:0|[1-9]\d*)$/.test(written) ? { value: parseJson(written) } : { problem: "enter a whole number" };
    case "number":
      return number.test(written) ? { value: parseJson(written) } : { problem: "enter a number, such as 12.5" };
  }
  let value: Json;
  try {
    value = parseJson(written);
  } catch (error) {
    return { problem: `enter valid JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  const fits = schema.type === "object" ? isObject(value) : schema.type === "array" ? Array.isArray(value) : true;
  return fits ? { value } : { problem: schema.type === "object" ? 'enter a JSON object, such as {"a": 1}' : "enter a JSON array, such as [1, 2]" };
}

function missing(type: unknown): string {
  switch (type) {
    case "boolean":
      return "choose yes or no";
    case "integer":
    case "number":
      return "enter a number";
  }
  return "enter a value";
}

/** Returns problems by the path of the control that shows them; a problem without a control has the path "". */
export function placed(problems: readonly { path: string; message: string }[], ...forms: readonly Collected[]): Map<string, string[]> {
  const out = new Map<string, string[]>();
  for (const { path, message } of problems) {
    let pointer = path;
    let control: string | undefined;
    while ((control = forms.map((f) => f.paths.get(pointer)).find((p) => p !== undefined)) === undefined && pointer.includes("/")) pointer = pointer.slice(0, pointer.lastIndexOf("/"));
    const rest = path.slice(pointer.length);
    const words = control === undefined ? (path ? `${path}: ${message}` : message) : rest ? `${rest}: ${message}` : message;
    out.set(control ?? "", [...(out.get(control ?? "") ?? []), words]);
  }
  return out;
}

/** A number as a control shows it. */
export const shown = (value: Json): string => (value instanceof ExactNumber ? value.text : typeof value === "string" ? value : stringifyJson(value));
