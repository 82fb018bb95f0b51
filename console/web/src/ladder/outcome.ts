import { record, text, texts } from "./events";
import type { Gate, Problem, Rung } from "./model";
import { passed, refused } from "./rungs";
import { lookup } from "../api/lookup";

/** The gate of each code of the accept pipeline. */
const gateOfCode: Record<string, Gate> = {
  capability_required: "shape",
  invalid_envelope_shape: "shape",
  unknown_envelope_kind: "kind",
  unknown_schema_version: "payload",
  envelope_invalid: "payload",
  envelope_contract_violation: "contract",
  cap_breached: "limits",
  untrusted_content_blocks_approval: "redaction",
  envelope_correlation_conflict: "dedup",
};

/** Returns the gates of an EnvelopeOutcome, the acceptor's response (OpenWOP envelope contract §2). */
export function rungsOfOutcome(outcome: unknown, cached = false): Rung[] {
  const o = record(outcome);
  if (text(o.status) === "accepted") {
    const events = texts(o.recordedEventIds);
    return passed(cached ? { dedup: "the earlier outcome", routing: "no new events" } : { routing: events.join(", ") });
  }
  const reason = text(o.reason) ?? "";
  const [code = ""] = reason.split(":", 1);
  const gate = lookup(gateOfCode, code) ?? "payload";
  const listed = record(o.gate);
  return refused({
    gate, code, reason: reason.slice(code.length).replace(/^: /, "") || reason, problems: detailsOf(o.details),
    refusedKind: text(listed.refusedType), acceptedKinds: o.allowedKinds === undefined ? undefined : texts(o.allowedKinds),
  });
}

function detailsOf(details: unknown): Problem[] {
  if (!Array.isArray(details)) return [];
  return details.map((d) => {
    const { message, schemaPath, instancePath } = record(d);
    return {
      message: text(message) ?? "is invalid",
      schemaPointer: text(schemaPath) || undefined, instancePointer: text(instancePath)?.replace(/^\/payload(?=\/|$)/, ""),
    };
  });
}
