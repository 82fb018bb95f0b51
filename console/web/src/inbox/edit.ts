// The form to edit a value: its fields come from the declared schema, and from the value itself where nothing is declared.
import { ExactNumber, isObject, type Json } from "../api/json";
import { record, texts } from "../ladder/events";
import { resolved, shapeOf, type Schema } from "../workflows/form";

/** Returns the schema of a form that shows and keeps every part of a value. */
export function editSchema(declared: unknown, value: Json | undefined): Schema {
  return merged(resolved(record(declared)), value);
}

function merged(declared: Schema, value: Json | undefined): Schema {
  if (declared.const !== undefined) return { ...declared, enum: [declared.const] };
  if (Array.isArray(declared.enum)) return declared;
  const type = declared.type ?? (isObject(declared.properties) ? "object" : undefined);
  if (isObject(value) && (type === undefined || type === "object")) return mergedObject(declared, value);
  if (Array.isArray(value) && (type === undefined || type === "array")) return mergedList(declared, value);
  if (type === "object") return { ...declared, type, properties: Object.fromEntries(Object.entries(record(declared.properties)).map(([name, s]) => [name, merged(record(s), undefined)])) };
  if (type !== undefined || value === undefined) return { ...declared, ...(type === undefined ? {} : { type }) };
  return { ...declared, ...typeOf(value) };
}

function mergedObject(declared: Schema, value: { [name: string]: Json }): Schema {
  const properties = record(declared.properties);
  const names = new Set([...Object.keys(properties), ...Object.keys(value)]);
  return {
    ...declared,
    type: "object",
    properties: Object.fromEntries([...names].map((name) => [name, merged(record(properties[name]), value[name])])),
    // A member without a declaration is never dropped because its field is empty.
    required: [...new Set([...texts(declared.required), ...Object.keys(value).filter((name) => !Object.hasOwn(properties, name))])],
  };
}

function mergedList(declared: Schema, value: Json[]): Schema {
  const items = record(declared.items);
  if (Array.isArray(items.enum)) return { ...declared, type: "array" };
  if (items.type === undefined && new Set(value.map(kindOf)).size !== 1) return { ...declared, type: "array" }; // a list of several types is JSON
  const each = value.map((v) => merged(items, v));
  const first = each[0] ?? items;
  if (first.type !== "object") return { ...declared, type: "array", items: first };
  const required = each.map((s) => texts(s.required));
  return {
    ...declared,
    type: "array",
    items: {
      ...first,
      properties: Object.assign({}, ...each.toReversed().map((s) => s.properties)) as Schema,
      required: (required[0] ?? []).filter((name) => required.every((names) => names.includes(name))),
    },
  };
}

const kindOf = (v: Json): string => (v === null ? "null" : Array.isArray(v) ? "array" : v instanceof ExactNumber ? "number" : typeof v);

function typeOf(value: Json): Schema {
  const kind = kindOf(value);
  if (kind === "string") return { type: "string", "x-emptyText": true };
  return kind === "boolean" || kind === "number" ? { type: kind } : {};
}

/** A value that is no object is the only field of its form. */
export function asForm(schema: Schema, name: string): { schema: Schema; wrapped: boolean } {
  if (shapeOf(schema).form === "object") return { schema, wrapped: false };
  return { schema: { type: "object", properties: { [name]: schema }, required: [name] }, wrapped: true };
}
