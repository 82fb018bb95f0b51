import { texts } from "./events";
import { gates, type Gate, type Problem, type Rung } from "./model";

/** Details of the gate that refused. */
export type Refusal = Omit<Rung, "gate" | "state"> & { gate: Gate };

/** Returns the gates of an accepted envelope, with their notes. */
export function passed(notes: Partial<Record<Gate, string>> = {}): Rung[] {
  return gates.map((gate) => ({ gate, state: "passed", note: notes[gate] }));
}

/** Returns the gates of a rejected envelope: passed, rejected, not reached. */
export function refused({ gate, ...why }: Refusal): Rung[] {
  const at = gates.indexOf(gate);
  return gates.map((name, i) => {
    if (i === at) return Object.assign({ gate: name, state: "refused" as const }, why);
    return { gate: name, state: i < at ? "passed" : "not-reached" };
  });
}

/** Returns the gates of an answer without a document. */
export function unreached(): Rung[] {
  return gates.map((gate) => ({ gate, state: "not-reached" }));
}

/** Returns the gate of a value, which is only validated against the node's schema. */
export function ofValue(wrong?: Omit<Refusal, "gate">): Rung[] {
  return gates.map((gate): Rung => {
    if (gate !== "payload") return { gate, state: "not-applicable" };
    return wrong ? Object.assign({ gate, state: "refused" as const }, wrong) : { gate, state: "passed" };
  });
}

/** Returns the gate that rejected an envelope. */
export function stoppedAt(rungs: Rung[]): Rung | undefined {
  return rungs.find((r) => r.state === "refused");
}

/** The members of an envelope, which the shape gate lists in its error. */
const members = ["correlationId", "envelopeId", "meta", "nodeId", "partial", "payload", "schemaVersion", "type"];

/** Parses a validation error of the host: `message (/schema/pointer)`, several separated by `; `. */
export function problemsOf(detail: string | undefined): Problem[] {
  if (!detail) return [];
  return detail.split(/; (?!allowed: )/).map((part) => {
    const m = /^(.*) \((\/[^()]*)\)$/s.exec(part);
    if (!m) return { message: part };
    const [, message = "", schemaPointer = ""] = m;
    return { message, schemaPointer, instancePointer: instanceOf(schemaPointer, message) };
  });
}

/** Returns the payload pointer of a schema rule; `*` is any element. */
export function instanceOf(schemaPointer: string, message = ""): string {
  const steps = schemaPointer.split("/").slice(1);
  let at = "";
  for (let i = 0; i < steps.length; i++) {
    const next = steps[i + 1];
    switch (steps[i]) {
      case "properties":
        if (next !== undefined) at += `/${next}`;
        i++;
        break;
      case "prefixItems":
        if (next !== undefined) at += `/${next}`;
        i++;
        break;
      case "items":
        if (next !== undefined) at += "/*";
        break;
      case "additionalProperties":
      case "patternProperties":
        if (next !== undefined) at += "/*";
        break;
      case "anyOf":
      case "oneOf":
      case "allOf":
      case "$defs":
        i++;
        break;
    }
  }
  const missing = /^required member missing: (\S+)$/.exec(message);
  return missing ? `${at}/${missing[1]}` : at;
}

/**
 * Returns the gate that caused a retry. The event has the reason and the validator's message, but no code; the message
 * identifies the gate.
 */
export function gateOf(reason: string, detail: string | undefined): Refusal {
  const text = detail ?? "";
  if (text.startsWith("its type is not one of ")) {
    const kinds = text.slice("its type is not one of ".length).split(", ");
    return { gate: "kind", code: "unknown_envelope_kind", reason: "this host does not advertise the kind", acceptedKinds: kinds };
  }
  if (text.startsWith("schemaVersion is ")) {
    return { gate: "payload", code: "unknown_schema_version", reason: text.replace(/ \(\/schemaVersions\)$/, ""), problems: problemsOf(detail) };
  }
  if (misshapen(text)) {
    return { gate: "shape", code: "invalid_envelope_shape", reason: "the document is not an AI envelope", problems: problemsOf(detail) };
  }
  return {
    gate: "payload",
    code: "envelope_invalid",
    reason: reason === "type-mismatch" ? "a value is of the wrong type" : "the payload does not satisfy the schema",
    problems: problemsOf(detail),
  };
}

function misshapen(text: string): boolean {
  if (text.includes(`allowed: ${members.join(", ")}`)) return true;
  return /^(the object has two members of this name|must be an ISO 8601|it is a fragment of an envelope|it is not a valid envelope)/.test(text);
}

/** Returns the rejection behind a node's error, if an envelope caused it. */
export function refusalOf(error: { code: string; message: string; details?: Record<string, unknown> | undefined }): Refusal | undefined {
  const { code, message: reason, details = {} } = error;
  switch (code) {
    case "envelope_contract_violation":
      return {
        gate: "contract", code, reason, acceptedKinds: Array.isArray(details.acceptedTypes) ? texts(details.acceptedTypes) : undefined,
        refusedKind: typeof details.refusedType === "string" ? details.refusedType : undefined,
      };
    case "unknown_envelope_kind":
      return { gate: "kind", code, reason };
    case "invalid_envelope_shape":
    case "capability_required":
      return { gate: "shape", code, reason };
    case "envelope_invalid":
    case "unknown_schema_version":
      return { gate: "payload", code, reason };
    case "cap_breached":
      return { gate: "limits", code, reason };
    case "untrusted_content_blocks_approval":
      return { gate: "redaction", code, reason };
    case "envelope_correlation_conflict":
      return { gate: "dedup", code, reason };
  }
  return undefined;
}
