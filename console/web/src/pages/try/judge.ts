// The gates of the accept pipeline that work without a run.
import { ExactNumber, isObject, parseJson, type Json } from "../../api/json";
import { violations } from "../../inbox/schema";
import { text } from "../../ladder/events";
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

/** Returns the validated document: the first one of the answer. */
export function documentOf(answer: string): { document: Json; note?: string } | undefined {
  const whole = tryParse(answer);
  const from = answer.search(/[[{]/);
  const document = whole ?? (from < 0 ? undefined : tryParse(answer.slice(from, Math.max(answer.lastIndexOf("}"), answer.lastIndexOf("]")) + 1)));
  if (document === undefined) return undefined;
  const freed = whole === undefined ? "The JSON was extracted from the surrounding text." : "";
  if (!Array.isArray(document)) return freed ? { document, note: freed } : { document };
  return { document: document[0] ?? null, note: `${freed} The answer holds ${document.length} documents; this is the first.`.trim() };
}

function tryParse(json: string): Json | undefined {
  try {
    return parseJson(json);
  } catch {
    return undefined;
  }
}

/** Returns the kind whose schema applies. */
export function kindOf({ text: answer, askedKind }: Given): string | undefined {
  const found = documentOf(answer)?.document;
  return isEnvelope(found) ? (text(found.type) ?? "") : askedKind || undefined;
}

const isEnvelope = (v: Json | undefined): v is { [name: string]: Json } => isObject(v) && "payload" in v && typeof v.type === "string";

/** Runs the gates on an answer. */
export function judge(given: Given, host: Host): Judged {
  const found = documentOf(given.text);
  if (!found) return { rungs: unreached(), problems: [], note: "The answer contains no whole JSON document. The host would call the model again." };
  const { document, note } = found;
  const more = note === undefined ? {} : { note };
  if (isObject(document) && typeof document.status === "string" && statuses.has(document.status)) {
    const rungs = rungsOfOutcome(document);
    return { rungs, problems: rungs.find((r) => r.state === "refused")?.problems ?? [], note: "This is what the acceptor said." };
  }
  const stop = (why: Refusal, kind?: string, payload?: Json): Judged => ({ rungs: refused(why), problems: why.problems ?? [], kind, payload, ...more });
  if (!isEnvelope(document) && given.askedKind === "") {
    return stop({ gate: "shape", code: "invalid_envelope_shape", reason: "an envelope has the members type and payload; a bare payload needs the kind requested by the node" });
  }
  const envelope = isEnvelope(document) ? document : { type: given.askedKind, payload: document };
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
