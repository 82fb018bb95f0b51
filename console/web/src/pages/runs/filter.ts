import { isObject, type Json } from "../../api/json";
import type { RunRow } from "../../api/model";

/** One term of a filter, as in `status:failed`. */
export type Term = { name: string; value: string };

const term = /(?<!\S)([a-z]+):(?:("(?:[^"\\]|\\.)*")|(\S+))/gi;

/** Parses a filter. Text that is not a term is returned as rest, and so are terms of unknown names. */
export function parseFilter(text: string): { terms: Term[]; rest: string } {
  const terms: Term[] = [];
  const rest = text.replace(term, (all: string, name: string, quoted: string | undefined, plain: string | undefined) => {
    if (!words.some((w) => w.name === name.toLowerCase())) return all;
    terms.push({ name: name.toLowerCase(), value: quoted === undefined ? (plain ?? "") : unquote(quoted) });
    return " ";
  });
  return { terms, rest: rest.trim() };
}

function unquote(quoted: string): string {
  try {
    const value: unknown = JSON.parse(quoted);
    if (typeof value === "string") return value;
  } catch {
    // an escape that JSON does not have: the text is taken as it is
  }
  return quoted.slice(1, -1);
}

export function formatFilter(terms: readonly Term[]): string {
  return terms.map(({ name, value }) => `${name}:${/[\s"]/.test(value) || value === "" ? JSON.stringify(value) : value}`).join(" ");
}

/** Returns the filter for what a person typed: words outside of terms are searched for. */
export function asFilter(text: string): string {
  const { terms, rest } = parseFilter(text);
  const words = rest.replace(/"/g, " ").trim();
  return words === "" || terms.some((t) => t.name === "text") ? text.trim() : formatFilter([...terms, { name: "text", value: words }]);
}

/** Sets or removes the terms of a name. */
export function withTerm(text: string, name: string, values: readonly string[]): string {
  const terms = parseFilter(text).terms.filter((t) => t.name !== name);
  return formatFilter([...terms, ...values.map((value) => ({ name, value }))]);
}

/** Reports whether a row matches; undefined if the row cannot tell. */
export function fits(row: RunRow, text: string): boolean | undefined {
  const { terms, rest } = parseFilter(text);
  let sure: true | undefined = rest === "" ? true : undefined;
  for (const { name, value } of terms) {
    switch (name) {
      case "status":
        if (!value.split(",").includes(row.status)) return false;
        break;
      case "workflow":
        if (row.workflowId !== value) return false;
        break;
      case "tag":
        if (!row.tags.includes(value)) return false;
        break;
      case "code":
        if (row.errorCode !== value) return false;
        break;
      default:
        sure = undefined;
    }
  }
  return sure;
}

/** Returns the path for a pasted id: a run, an event of a run, or another id that starts with a run id. */
export function jump(text: string): string | undefined {
  const id = text.trim();
  const event = /^ev_(run_[a-z0-9]+)_(\d+)$/.exec(id);
  if (event) return `/runs/${event[1]}?e=${event[2]}`;
  const run = /^(run_[a-z0-9]{8,})(?::|$)/.exec(id);
  return run ? `/runs/${run[1]}` : undefined;
}

/** The filter terms, with a description and an example. */
export const words: readonly { name: string; keeps: string; example: string }[] = [
  { name: "status", keeps: "Runs of this status", example: "status:failed" },
  { name: "workflow", keeps: "Runs of this workflow", example: "workflow:triage" },
  { name: "tag", keeps: "Runs with this tag", example: 'tag:"order 7"' },
  { name: "code", keeps: "Runs that ended with this error code", example: "code:cap_breached" },
  { name: "kind", keeps: "Runs with an envelope of this kind", example: "kind:clarification.request" },
  { name: "provider", keeps: "Runs that called a model of this provider", example: "provider:openai" },
  { name: "model", keeps: "Runs that called this model", example: "model:gpt-5-mini" },
  { name: "since", keeps: "Runs created since this time", example: "since:2h" },
  { name: "until", keeps: "Runs created before this time", example: "until:2026-11-22" },
  { name: "cost", keeps: "Runs that cost at least this many US dollars", example: "cost:0.05" },
  { name: "waiting", keeps: "Runs that wait for a person or another system, for at least this long", example: "waiting:1h" },
  { name: "text", keeps: "Runs whose inputs, outputs, answers or errors have words that begin with these", example: 'text:"order 4711"' },
];

/** Returns the values of a term from the discovery document. */
export function suggestions(name: string, document: Json | undefined): string[] {
  if (!isObject(document)) return [];
  const providers = isObject(document.aiProviders) ? document.aiProviders.supported : undefined;
  const values = name === "kind" ? document.supportedEnvelopes : name === "provider" ? providers : undefined;
  return Array.isArray(values) ? values.filter((v) => typeof v === "string") : [];
}
