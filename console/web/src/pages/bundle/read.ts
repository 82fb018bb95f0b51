// Parses exported runs: a debug bundle, or events as JSON lines.
import { isObject, parseJson, type Json } from "../../api/json";
import type { RunEvent, RunSnapshot, RunStatus } from "../../api/model";
import type { RunView } from "../../ladder/model";
import { lookup } from "../../api/lookup";

export type Recorded = {
  snapshot: RunSnapshot;
  /** Events 0..n without a gap. */
  events: RunEvent[];
  /** The host's view of these events; null: the file has none. */
  view: RunView | null;
  /** Notes on the file. */
  notes: string[];
};

export const largest = 64 * 1024 * 1024;

/** Reads a file, which may be compressed with gzip; throws an Error with the problem. */
export async function textOf(file: Blob): Promise<string> {
  const start = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  if (start[0] !== 0x1f || start[1] !== 0x8b) return file.text();
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let size = 0; ; ) {
    const { done, value } = await reader.read().catch(() => {
      throw new Error(`The archive is damaged or truncated: ${size} bytes of it can be read.`);
    });
    if (done) return text + decoder.decode();
    size += value.byteLength;
    if (size > largest) throw new Error(`It is larger than ${largest / 1024 / 1024} MiB without compression.`);
    text += decoder.decode(value, { stream: true });
  }
}

const sealEnd = /,"sha256":"([0-9a-f]{64})"\}\}$/;

/** Checks the hash of an archive; throws an Error if it does not match. Returns a note; null: the file is not an archive. */
export async function checkSeal(text: string): Promise<string | null> {
  const whole = tryParse(text);
  if (!isObject(whole) || !isObject(whole.archive)) return null;
  const document = text.trimEnd();
  const end = sealEnd.exec(document);
  if (!end) throw new Error("The archive was written again: its hash is not its last member.");
  // Browsers have no hashes on pages that are not secure.
  if (!globalThis.isSecureContext) return "It is an archive, whose hash this page cannot check: open the console over HTTPS, or use waybill run import.";
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(document.slice(0, end.index)));
  const hash = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  if (hash !== end[1]) throw new Error("The archive was changed: its SHA-256 does not match. waybill run import says where.");
  return "It is an archive, and its hash matches.";
}

/** Parses a file; throws an Error with the problem. */
export function readRecorded(text: string): Recorded {
  const whole = tryParse(text);
  if (isObject(whole) && isObject(whole.run) && Array.isArray(whole.events)) return ofBundle(whole);
  const lines = text.split("\n").filter((line) => line.trim() !== "").map(tryParse);
  if (lines.length > 0 && lines.every(isEvent)) return ofEvents(lines as unknown as RunEvent[]);
  throw new Error("This is neither a debug bundle nor the events of a run as JSON lines.");
}

function tryParse(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

const isEvent = (v: Json | undefined): boolean => isObject(v) && typeof v.type === "string" && Number.isInteger(Number(v.sequence)) && isObject(v.payload);

function ofBundle(bundle: { [name: string]: Json }): Recorded {
  const run = bundle.run as { [name: string]: Json };
  const listed = (bundle.events as Json[]).filter(isEvent) as unknown as RunEvent[];
  if (typeof run.runId !== "string" || typeof run.status !== "string") throw new Error("The bundle does not contain a run id.");
  const events = unbroken(listed);
  const notes: string[] = [];
  if (typeof bundle.generatedAt === "string") notes.push(`Exported at ${bundle.generatedAt}.`);
  if (bundle.truncated === true || events.length < listed.length) {
    const last = listed.at(-1);
    notes.push(`The log is cut after #${events.length - 1}${last && last.sequence >= events.length ? `; it ended with #${last.sequence}, ${last.type}` : ""}.`);
  }
  notes.push(bundle.redactionApplied === true ? `Its content was redacted (mode ${String(bundle.redactionMode)}).` : "Nothing was redacted.");
  return { snapshot: { workflowId: "unknown", ...run } as unknown as RunSnapshot, events, view: viewIn(bundle.view), notes };
}

// Another host's member of this name is not a view.
function viewIn(view: Json | undefined): RunView | null {
  const known = isObject(view) && Array.isArray(view.answers) && isObject(view.timeline) && isObject(view.cost);
  return known ? (view as unknown as RunView) : null;
}

function ofEvents(listed: RunEvent[]): Recorded {
  const events = unbroken(listed);
  const first = events[0];
  if (!first || events.some((e) => e.runId !== first.runId)) throw new Error("The events are not those of one run from its start.");
  const started = events.find((e) => e.type === "run.started");
  const end = events.findLast((e) => lookup(ended, e.type) !== undefined);
  const error = end?.payload.error;
  const snapshot: RunSnapshot = {
    runId: first.runId,
    workflowId: typeof started?.payload.workflowId === "string" ? started.payload.workflowId : "unknown",
    status: (end && lookup(ended, end.type)) ?? "running",
    createdAt: first.timestamp,
  };
  if (started) snapshot.startedAt = started.timestamp;
  if (end) snapshot.completedAt = end.timestamp;
  if (isObject(error) && typeof error.code === "string") snapshot.error = { code: error.code, message: String(error.message ?? "") };
  return { snapshot, events, view: null, notes: ["The file contains only events. The run's state is computed from them."] };
}

const ended: { [type: string]: RunStatus | undefined } = { "run.completed": "completed", "run.failed": "failed", "run.cancelled": "cancelled" };

function unbroken(listed: RunEvent[]): RunEvent[] {
  const events: RunEvent[] = [];
  for (const event of listed) if (Number(event.sequence) === events.length) events.push(event);
  return events;
}
