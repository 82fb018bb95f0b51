// The gates of the accept pipeline that work without a run.
import { ExactNumber, isObject, parseJson, type Json } from "../../api/json";
import { violations } from "../../inbox/schema";
import { gates, type Problem, type Rung } from "../../ladder/model";
import { rungsOfOutcome } from "../../ladder/outcome";
import { refused, unreached, type Refusal } from "../../ladder/rungs";

export type Given = {
  /** A model's answer, an envelope, or an acceptor's response. */
  text: string;
  /** The kind requested by the node; the answer may then be a bare payload. */
  askedKind: string;
  /** Kinds accepted by the node's contract; empty means any. */
  accepts: string[];
};

export type Host = {
  /** Schema versions of the host's kinds. */
  versions: Record<string, unknown>;
  /** The kind's schema, once loaded. */
  schema: Json | undefined;
};

export type Judged = { rungs: Rung[]; kind?: string | undefined; payload?: Json | undefined; problems: Problem[]; note?: string };

/** Kinds that every contract accepts (OpenWOP envelope contract §8). */
const universal = ["clarification.request", "schema.request", "schema.response", "error"];
const members = ["correlationId", "envelopeId", "meta", "nodeId", "partial", "payload", "schemaVersion", "type"];
const statuses = new Set(["accepted", "gated", "invalid", "breached"]);

type ReadDocument = { document: Json; envelope?: boolean; kind: string; path: string; found: string; byteOffset?: number };

/** What the host found in an answer. */
export type Reading = {
  documents?: ReadDocument[];
  /** Why there are none. */
  reason?: string;
  detail?: string;
};

/** Returns the acceptor's response that a text is; undefined for an answer. */
export function outcomeIn(answer: string): Json | undefined {
  try {
    const document = parseJson(answer);
    return isObject(document) && typeof document.status === "string" && statuses.has(document.status) ? document : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the kind whose schema applies. */
export function kindOf({ askedKind }: Given, reading: Reading | undefined): string | undefined {
  const found = reading?.documents?.[0];
  return found ? found.kind : askedKind || undefined;
}

/** Runs the gates on an answer. */
export function judge(given: Given, reading: Reading | undefined, host: Host): Judged {
  const outcome = outcomeIn(given.text);
  if (outcome !== undefined) {
    const rungs = rungsOfOutcome(outcome);
    return { rungs, problems: rungs.find((r) => r.state === "refused")?.problems ?? [], note: "This is the acceptor's response." };
  }
  const found = reading?.documents?.[0];
  if (!found) return { rungs: unreached(), problems: [], note: `The answer has no document: ${reading?.detail ?? "it is not read yet"}. The host would call the model again.` };
  const { document } = found;
  const more = { note: noteOf(found, reading?.documents?.length ?? 1) };
  const stop = (why: Refusal, kind?: string, payload?: Json): Judged => ({ rungs: refused(why), problems: why.problems ?? [], kind, payload, ...more });
  const envelope: { [name: string]: Json } = found.envelope && isObject(document) ? document : { type: found.kind, payload: document };
  const kind = String(envelope.type);
  const payload = envelope.payload as Json;
  const shape = shapeProblems(envelope);
  if (shape.length > 0) return stop({ gate: "shape", code: "invalid_envelope_shape", reason: "the document is not an AI envelope", problems: shape }, kind, payload);
  const advertised = host.versions[kind];
  if (advertised === undefined) {
    return stop({ gate: "kind", code: "unknown_envelope_kind", reason: "this host does not advertise the kind", refusedKind: kind, acceptedKinds: Object.keys(host.versions) }, kind, payload);
  }
  if (Number(envelope.schemaVersion ?? 0) > Number(advertised)) {
    return stop({ gate: "payload", code: "unknown_schema_version", reason: `schemaVersion is above the advertised ${String(advertised)}` }, kind, payload);
  }
  const wrong = [...violations(host.schema, toPlainNumbers(payload))].map(([instancePointer, message]): Problem => ({ message, instancePointer }));
  if (wrong.length > 0) return stop({ gate: "payload", code: "envelope_invalid", reason: "the payload does not satisfy the schema", problems: wrong }, kind, payload);
  if (given.accepts.length > 0 && !given.accepts.includes(kind) && !universal.includes(kind)) {
    return stop({ gate: "contract", code: "envelope_contract_violation", reason: "the node's contract does not accept the kind", refusedKind: kind, acceptedKinds: [...given.accepts, ...universal] }, kind, payload);
  }
  const rungs = gates.map((gate, i): Rung => (i <= gates.indexOf("contract") ? { gate, state: "passed" } : { gate, state: "not-reached", note: "the run decides" }));
  return { rungs, problems: [], kind, payload, ...more };
}

function noteOf({ found, path, byteOffset }: ReadDocument, size: number): string {
  const where = path === "direct" ? "" : `${found.charAt(0).toUpperCase()}${found.slice(1)}, from byte ${byteOffset ?? 0}.`;
  return `${where}${size > 1 ? ` The answer has ${size} documents; this is the first.` : ""}`.trim();
}

function shapeProblems(envelope: { [name: string]: Json }): Problem[] {
  const out: Problem[] = [];
  for (const name of Object.keys(envelope)) if (!members.includes(name)) out.push({ message: `additional member not allowed: ${name}; allowed: ${members.join(", ")}` });
  for (const name of ["envelopeId", "correlationId", "nodeId"]) {
    if (envelope[name] !== undefined && (typeof envelope[name] !== "string" || envelope[name] === "")) out.push({ message: `${name}: must be a non-empty string` });
  }
  if (envelope.schemaVersion !== undefined && !/^\d+$/.test(String(envelope.schemaVersion))) out.push({ message: "schemaVersion: must be a whole number" });
  for (const name of ["meta", "partial"]) if (envelope[name] !== undefined && !isObject(envelope[name])) out.push({ message: `${name}: must be an object` });
  return out;
}

// The validator supports only JavaScript numbers.
function toPlainNumbers(value: Json): unknown {
  if (value instanceof ExactNumber) return Number(value.toString());
  if (Array.isArray(value)) return value.map(toPlainNumbers);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([k, v]) => [k, toPlainNumbers(v)])) : value;
}
