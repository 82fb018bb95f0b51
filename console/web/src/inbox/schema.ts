// Controls and validation messages from the JSON Schema of an answer.
import { Validator, type OutputUnit, type Schema } from "@cfworker/json-schema";
import { number, record, text } from "../ladder/events";

export type Control =
  | { form: "choice"; options: unknown[] }
  | { form: "yes-no" }
  | { form: "number"; whole: boolean }
  | { form: "text"; maxLength: number | undefined; format: string | undefined }
  | { form: "several"; options: unknown[] }
  | { form: "json" };

/** Returns the control for a schema; complex schemas use JSON. */
export function controlOf(schema: unknown): Control {
  const s = record(schema);
  if (schema === undefined) return { form: "text", maxLength: undefined, format: undefined };
  if (Array.isArray(s.enum)) return { form: "choice", options: s.enum };
  if (s.const !== undefined) return { form: "choice", options: [s.const] };
  switch (s.type) {
    case "boolean":
      return { form: "yes-no" };
    case "integer":
    case "number":
      return { form: "number", whole: s.type === "integer" };
    case "string":
      return { form: "text", maxLength: number(s.maxLength), format: text(s.format) };
    case "array": {
      const options = record(s.items).enum;
      return Array.isArray(options) ? { form: "several", options } : { form: "json" };
    }
  }
  return { form: "json" };
}

/** Validates a value; returns messages by JSON Pointer, empty if valid. */
export function violations(schema: unknown, value: unknown): Map<string, string> {
  const out = new Map<string, string>();
  if (schema === undefined || schema === true) return out;
  let found: OutputUnit[];
  try {
    found = new Validator(schema as Schema, "2020-12", false).validate(value).errors;
  } catch {
    return out; // the host validates schemas that cannot be read here
  }
  for (const e of found) {
    const at = e.instanceLocation.replace(/^#/, "");
    const words = inWords(e, record(schema), value);
    if (words && !out.has(at)) out.set(at, words);
  }
  return out;
}

// Keywords that only report a failure of a subschema.
const wrappers = new Set(["properties", "items", "prefixItems", "allOf", "$ref", "if", "then", "else", "patternProperties", "contains"]);

function inWords(e: OutputUnit, schema: Record<string, unknown>, value: unknown): string | undefined {
  if (wrappers.has(e.keyword)) return undefined;
  const rule = atPointer(schema, e.keywordLocation.replace(/^#/, ""));
  const limit = String(rule);
  switch (e.keyword) {
    case "enum":
      return `choose one of ${list(rule)}`;
    case "const":
      return `must be ${JSON.stringify(rule)}`;
    case "type":
      return `must be ${Array.isArray(rule) ? rule.join(" or ") : article(limit)}`;
    case "maxLength": {
      const given = atPointer(value, e.instanceLocation.replace(/^#/, ""));
      return `at most ${limit} characters${typeof given === "string" ? `, this has ${[...given].length}` : ""}`;
    }
    case "minLength":
      return limit === "1" ? "must not be empty" : `at least ${limit} characters`;
    case "minimum":
      return `at least ${limit}`;
    case "maximum":
      return `at most ${limit}`;
    case "exclusiveMinimum":
      return `more than ${limit}`;
    case "exclusiveMaximum":
      return `less than ${limit}`;
    case "multipleOf":
      return `a multiple of ${limit}`;
    case "minItems":
      return `choose at least ${limit}`;
    case "maxItems":
      return `choose at most ${limit}`;
    case "pattern":
      return `must match ${limit}`;
    case "format":
      return `must be ${article(limit)}`;
    case "required":
      return e.error.replace(/^Instance does not have required property/, "missing member").replace(/\.$/, "");
    case "additionalProperties":
      return "has an unknown member";
    case "false":
      return undefined;
  }
  return e.error.replace(/\.$/, "");
}

const article = (word: string): string => `${/^[aeiou]/.test(word) ? "an" : "a"} ${word}`;
const list = (options: unknown): string => (Array.isArray(options) ? options.map((o) => (typeof o === "string" ? o : JSON.stringify(o))).join(", ") : "");

function atPointer(document: unknown, pointer: string): unknown {
  let here = document;
  for (const step of pointer.split("/").slice(1)) {
    const name = decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
    here = Array.isArray(here) ? here[Number(name)] : record(here)[name];
  }
  return here;
}
