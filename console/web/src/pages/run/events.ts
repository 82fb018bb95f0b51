import { ExactNumber, isObject, stringifyJson, type Json } from "../../api/json";
import type { RunEvent } from "../../api/model";
import { lookup } from "../../api/lookup";

/** The group of an event, for filters. Unknown types are "other". */
export const groups = ["run", "node", "interrupt", "envelope", "model", "tool", "memory", "artifact", "data", "log", "other"] as const;
export type Group = (typeof groups)[number];

const byPrefix: { [prefix: string]: Group } = {
  run: "run",
  workflow: "run",
  lease: "run",
  replay: "run",
  cap: "run",
  node: "node",
  interrupt: "interrupt",
  approval: "interrupt",
  clarification: "interrupt",
  conversation: "interrupt",
  envelope: "envelope",
  provider: "model",
  model: "model",
  prompt: "model",
  output: "model",
  budget: "model",
  tool: "tool",
  agent: "tool",
  runOrchestrator: "tool",
  connector: "tool",
  egress: "tool",
  memory: "memory",
  channel: "memory",
  workspace: "memory",
  artifact: "artifact",
  variable: "data",
  version: "data",
  log: "log",
};

export function groupOf(type: string): Group {
  return lookup(byPrefix, type.slice(0, type.indexOf("."))) ?? "other";
}

export function text(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" || value instanceof ExactNumber ? String(value) : "";
}

function error(value: Json | undefined): string {
  return isObject(value) ? [text(value.code), text(value.message)].filter(Boolean).join(": ") : "";
}

function words(...parts: (string | false | undefined)[]): string {
  return parts.filter(Boolean).join(" · ");
}

type Payload = RunEvent["payload"];

// A value in a line: long ones are in the event.
function short(value: Json | undefined): string {
  const written = value === undefined ? "" : stringifyJson(value);
  return written.length > 80 ? `${written.slice(0, 80)}…` : written;
}

// The most useful detail of each event type.
const details: { [type: string]: (p: Payload) => string } = {
  "run.started": (p) => words(text(p.workflowId), p.transport ? `by ${text(p.transport)}` : ""),
  "run.failed": (p) => error(p.error),
  "run.cancelled": (p) => text(p.reason),
  "run.paused": (p) => words(text(p.reason), text(p.drainPolicy)),
  "run.resumed": (p) => text(p.reason),
  "node.started": (p) => words(text(p.typeId), Number(p.attempt) > 0 && `attempt ${Number(p.attempt) + 1}`),
  "node.completed": (p) => (isObject(p.outputs) && Object.keys(p.outputs).length > 0 ? `outputs ${Object.keys(p.outputs).join(", ")}` : ""),
  "node.failed": (p) => error(p.error),
  "node.retried": (p) => p.reason === "branched" ? "the branch starts here" : words(`attempt ${Number(p.attempt) + 1}`, Boolean(p.delayMs) && `after ${text(p.delayMs)} ms`, error(p.lastError)),
  "node.skipped": (p) => text(p.reason),
  "node.cancelled": (p) => text(p.reason),
  "node.suspended": (p) => words(text(p.kind), text(p.key)),
  "node.dispatched": (p) => words(text(p.childWorkflowId), text(p.childRunId)),
  "interrupt.requested": (p) => words(text(p.kind), isObject(p.data) && text(p.data.title ?? p.data.prompt ?? p.data.question)),
  "interrupt.resolved": (p) => words(text(p.kind), text(p.outcome), Boolean(p.resolvedBy) && `by ${text(p.resolvedBy)}`),
  "approval.requested": (p) => words(text(p.title), Array.isArray(p.actions) && p.actions.map(text).join(", ")),
  "approval.received": (p) => words(text(p.action), Boolean(p.decidedBy) && `by ${text(p.decidedBy)}`, text(p.comment)),
  "clarification.requested": (p) => (Array.isArray(p.questions) ? p.questions.map((q) => (isObject(q) ? text(q.question) : "")).join(" / ") : ""),
  "clarification.resolved": (p) => words(isObject(p.answers) && Object.keys(p.answers).join(", ")),
  "artifact.created": (p) => words(text(p.artifactType), text(p.artifactId)),
  "variable.changed": (p) => `${text(p.name)} = ${short(p.next)}`,
  "channel.written": (p) => words(text(p.channel), text(p.reducer)),
  "log.appended": (p) => words(text(p.level), text(p.message)),
  "cap.breached": (p) => `${text(p.kind)}: ${text(p.observed)} of at most ${text(p.limit)}`,
  "provider.usage": (p) => words(`${text(p.provider)}/${text(p.model)}`, `${tokens(p.inputTokens)} in`, `${tokens(p.outputTokens)} out`),
  "model.capability.substituted": (p) => `${text(p.originalModel)} → ${text(p.fallbackModel)}${list(p.missingCapabilities, ", missing ")}`,
  "model.capability.insufficient": (p) => `${text(p.model)}${list(p.missingCapabilities, " lacks ")}`,
  "envelope.retry.attempted": (p) => words(`attempt ${text(p.attempt)}`, text(p.reason), text(p.previousError)),
  "envelope.retry.exhausted": (p) => words(`after ${text(p.totalAttempts)}`, text(p.finalReason), text(p.finalError)),
  "envelope.refusal": (p) => words(text(p.model), text(p.safetyCategory), p.refusalText ? text(p.refusalText) : "text withheld by policy"),
  "envelope.truncated": (p) => words(text(p.model), text(p.stopReason), p.outputTokenCount !== undefined && `${text(p.outputTokenCount)} tokens`),
  "envelope.recovery.applied": (p) => text(p.path),
  "envelope.nlToFormat.engaged": (p) => text(p.originalEnvelopeType),
  "output.chunk": (p) => text(p.chunk),
};

function tokens(value: Json | undefined): string {
  const n = value === undefined || value === null ? Number.NaN : Number(value);
  return Number.isSafeInteger(n) ? n.toLocaleString("en") : text(value) || "–"; // large numbers are not rounded
}

function list(value: Json | undefined, before: string): string {
  return Array.isArray(value) && value.length > 0 ? before + value.map(text).join(", ") : "";
}

const maxShown = 300;

/** Summarises an event's payload in one line. */
export function detailOf(event: RunEvent): string {
  const detail = lookup(details, event.type);
  const line = detail ? detail(event.payload) : firstText(event.payload);
  return line.length > maxShown ? `${line.slice(0, maxShown)}…` : line;
}

// For unknown types, returns the first text of the payload.
function firstText(payload: Payload): string {
  if (!isObject(payload)) return text(payload);
  for (const [name, value] of Object.entries(payload)) {
    if (name === "nodeId" || name === "runId") continue;
    const line = text(value);
    if (line) return `${name}: ${line}`;
  }
  return "";
}

/** A row of the table: one event, or consecutive chunks of an answer. */
export type Row = { from: number; to: number };

export type RowFilter = { groups: ReadonlySet<Group>; node: string; text: string; chunks: boolean };

export const everything: RowFilter = { groups: new Set(), node: "", text: "", chunks: false };

function fits(event: RunEvent, filter: RowFilter, needle: string): boolean {
  if (filter.groups.size > 0 && !filter.groups.has(groupOf(event.type))) return false;
  if (filter.node && event.nodeId !== filter.node) return false;
  if (!needle) return true;
  return `${event.type} ${event.nodeId ?? ""} ${event.eventId} ${event.causationId ?? ""} ${detailOf(event)}`.toLowerCase().includes(needle);
}

/** Adds rows for the events from an index on. Chunks of one answer share a row, unless the filter separates them. */
export function addRows(rows: Row[], events: readonly RunEvent[], from: number, filter: RowFilter): void {
  const needle = filter.text.trim().toLowerCase();
  for (let at = from; at < events.length; at++) {
    const event = events[at] as RunEvent;
    if (!fits(event, filter, needle)) continue;
    const last = rows.at(-1);
    const before = last && events[last.to];
    const joins = !filter.chunks && !needle && event.type === "output.chunk" && before?.type === "output.chunk" && before.nodeId === event.nodeId && last?.to === at - 1;
    if (joins && last) rows[rows.length - 1] = { from: last.from, to: at };
    else rows.push({ from: at, to: at });
  }
}

/** Reports whether a model was called, so that a ladder exists; with a node, only for that node. */
export function modelAsked(events: readonly RunEvent[], nodeId?: string): boolean {
  return events.some((e) => /^(provider\.usage$|envelope\.|model\.capability\.)/.test(e.type) && (nodeId === undefined || (e.nodeId ?? e.payload.nodeId) === nodeId));
}
