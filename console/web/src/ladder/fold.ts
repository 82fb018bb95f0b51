import { errorOf, nodeOf, number, record, recordedBy, refOf, text, texts, type RunEvent } from "./events";
import type { Call, Cause, Envelope, EventRef, Execution, Failure, NodeError } from "./model";
import { gateOf, ofValue, passed, refusalOf, refused, type Refusal } from "./rungs";
import { integerOf } from "../api/json";
import { lookup } from "../api/lookup";

const structured = "core.ai.structuredOutput";

/**
 * Returns the model calls of a run and their outcomes, in the order of node execution. It reads only the run's events,
 * in order.
 */
export function executionsOf(events: readonly RunEvent[]): Execution[] {
  const all: Execution[] = [];
  const nodes = new Map<string, Node>();
  for (const e of events) {
    const id = nodeOf(e);
    if (id === undefined) continue;
    let node = nodes.get(id);
    if (!node) nodes.set(id, (node = new Node(id)));
    const begun = node.take(e);
    if (begun) all.push(begun);
  }
  return all.filter((x) => x.calls.length > 0 || x.substitution || x.insufficient || x.typeId?.startsWith("core.ai."));
}

/** State of one node while the log is folded. */
class Node {
  private current: Execution | undefined;
  private number = 0;
  private waiting = false;
  private handedIn = false;
  /** The call that recorded each sequence, to resolve duplicate envelopes. */
  private readonly recordedAt = new Map<number, { call: Call; envelope: Envelope }>();

  constructor(private readonly nodeId: string) {}

  /** Applies an event of the node, and returns the execution that it starts. */
  take(e: RunEvent): Execution | undefined {
    const before = this.current;
    this.read(e);
    const x = this.current;
    if (x) x.to = Math.max(x.to, e.sequence);
    return x && x !== before ? x : undefined;
  }

  private read(e: RunEvent): void {
    const p = record(e.payload);
    switch (e.type) {
      case "model.capability.substituted":
        this.begin(e).substitution = {
          from: { provider: text(p.originalProvider) ?? "", model: text(p.originalModel) ?? "" },
          to: { provider: text(p.fallbackProvider) ?? "", model: text(p.fallbackModel) ?? "" },
          missing: texts(p.missingCapabilities),
          hidden: text(p.fallbackModel) === "[REDACTED]",
          event: refOf(e),
        };
        return;
      case "model.capability.insufficient":
        this.begin(e).insufficient = {
          provider: text(p.provider) ?? "", model: text(p.model) ?? "", missing: texts(p.missingCapabilities),
          fallbackAttempted: p.fallbackAttempted === true, event: refOf(e),
        };
        return;
      case "node.started": {
        const x = this.current?.result === "open" && this.current.typeId === undefined && this.current.substitution ? this.current : this.begin(e);
        x.typeId = text(p.typeId);
        return;
      }
      case "node.retried":
        this.end("retried", errorOf({ error: p.lastError ?? p.error }));
        return;
      case "node.suspended":
        if (this.current?.result === "open") this.current.result = "waiting";
        return;
      case "node.resumed":
        if (this.current?.result === "waiting") this.current.result = "open";
        this.waiting = true;
        return;
      case "node.cancelled":
        this.end("cancelled");
        return;
      case "node.completed":
        this.completed(e);
        return;
      case "node.failed":
        this.failed(e);
        return;
      default:
        this.answered(e);
    }
  }

  private begin(e: RunEvent): Execution {
    this.current = { nodeId: this.nodeId, number: ++this.number, calls: [], result: "open", from: e.sequence, to: e.sequence };
    this.waiting = false;
    return this.current;
  }

  private end(result: Execution["result"], error?: NodeError): void {
    if (!this.current) return;
    this.current.result = result;
    this.current.error = error;
  }

  /** Returns the open call, or starts one if the last call has ended. */
  private call(e: RunEvent, closed: (c: Call) => boolean, cause?: Cause): Call {
    const x = this.current ?? this.begin(e);
    const last = x.calls.at(-1);
    if (last && !closed(last)) {
      last.to = e.sequence;
      return last;
    }
    return this.open(x, e, cause ?? this.causeOf(last));
  }

  private causeOf(last: Call | undefined): Cause {
    if (!last) return "first";
    return this.waiting ? "after-answer" : "next-turn";
  }

  private open(x: Execution, e: RunEvent, cause: Cause, attempt?: number, because?: Failure): Call {
    const last = x.calls.at(-1);
    const c: Call = {
      ordinal: x.calls.length + 1,
      attempt: attempt ?? (cause === "after-answer" || !last ? 1 : last.attempt + 1),
      cause, because, envelopes: [], from: e.sequence, to: e.sequence,
    };
    x.calls.push(c);
    this.waiting = false;
    return c;
  }

  private answered(e: RunEvent): void {
    const p = record(e.payload);
    switch (e.type) {
      case "output.chunk": {
        const c = this.call(e, answeredBefore);
        c.text = (c.text ?? "") + (text(p.chunk) ?? "");
        return;
      }
      case "provider.usage": {
        const c = this.call(e, answeredBefore);
        c.usage = {
          provider: text(p.provider) ?? "", model: text(p.model) ?? "", inputTokens: integerOf(p.inputTokens) ?? 0n, outputTokens: integerOf(p.outputTokens) ?? 0n,
          costUsd: number(p.costEstimateUsd),
        };
        return;
      }
      case "envelope.truncated":
        this.last(e).truncated = {
          stopReason: text(p.stopReason) ?? "unknown", partial: p.partialPayloadAvailable === true,
          outputTokens: number(p.outputTokenCount),
        };
        return;
      case "envelope.refusal": {
        const refusal = text(p.refusalText);
        this.last(e).refusal = { withheld: refusal === undefined, text: refusal, category: text(p.safetyCategory) };
        return;
      }
      case "envelope.recovery.applied":
        this.last(e).recovery = { path: text(p.path) ?? "custom", byteOffset: number(p.byteOffset) };
        return;
      case "envelope.retry.attempted": {
        const because = failureOf(p.reason, p.previousError);
        this.fails(this.last(e), because);
        if (this.current) this.open(this.current, e, "retry", number(p.attempt), because);
        return;
      }
      case "envelope.retry.exhausted": {
        const why = failureOf(p.finalReason, p.finalError);
        this.fails(this.last(e), why);
        if (this.current) this.current.exhausted = { totalAttempts: number(p.totalAttempts) ?? this.current.calls.length, reason: why.reason };
        return;
      }
      case "envelope.nlToFormat.engaged": {
        // Only an answer without a document counts as prose; the event has no further cause.
        const why: Failure = { reason: "parse-error", detail: "the answer contains no JSON document" };
        this.fails(this.last(e), why);
        if (this.current) this.open(this.current, e, "prose-fallback", undefined, why);
        return;
      }
      case "cap.breached":
        this.breached(e);
        return;
      default:
        this.recorded(e);
    }
  }

  /** Returns the last call, which an event of the host refers to. */
  private last(e: RunEvent): Call {
    return this.call(e, () => false);
  }

  /** Ends a call whose answer was rejected. */
  private fails(c: Call, why: Failure): void {
    c.failure = why;
    if (why.reason === "truncation" || why.reason === "refusal" || why.reason === "parse-error") return;
    const gate = gateOf(why.reason, why.detail);
    if (this.current?.typeId === structured && gate.gate === "payload") {
      const { gate: _, ...wrong } = gate;
      c.envelopes.push({ key: this.key(c), form: "value", outcome: "refused", rungs: ofValue(wrong), events: [] });
      return;
    }
    this.refuses(c, gate);
  }

  private refuses(c: Call, gate: Refusal, more: Partial<Envelope> = {}): void {
    c.envelopes.push({ key: this.key(c), form: "envelope", outcome: "refused", kind: gate.refusedKind, rungs: refused(gate), events: [], ...more });
  }

  private key(c: Call): string {
    return `${this.nodeId}.${this.number}.${c.ordinal}.${c.envelopes.length + 1}`;
  }

  private breached(e: RunEvent): void {
    const p = record(e.payload);
    const breach = { kind: text(p.kind) ?? "", limit: number(p.limit) ?? 0, observed: number(p.observed) ?? 0 };
    if (!this.current) return; // a limit of the run, not of a model
    if (this.current.exhausted || !["envelopes", "schema", "clarification"].includes(breach.kind)) {
      this.current.capBreached = breach;
      return;
    }
    const c = this.last(e);
    this.refuses(c, {
      gate: "limits", code: "cap_breached", reason: `${lookup(words, breach.kind) ?? breach.kind}: ${breach.observed} exceeds the limit of ${breach.limit}`,
    }, { events: [refOf(e)], correlationId: e.causationId });
  }

  private recorded(e: RunEvent): void {
    const p = record(e.payload);
    const fields = record(p.fields);
    if (e.type === "log.appended" && text(fields.refusalMode) !== undefined) {
      this.refuses(this.last(e), {
        gate: "contract", code: "envelope_contract_violation", reason: text(p.message) ?? "discarded",
        refusedKind: text(fields.kind), acceptedKinds: texts(fields.allowedKinds),
      }, { outcome: "discarded", events: [refOf(e)], correlationId: e.causationId });
      return;
    }
    const r = e.causationId === undefined ? undefined : recordedBy(e);
    if (!r) {
      this.companion(e);
      return;
    }
    const cause: Cause | undefined = this.current ? undefined : "handed-in";
    // Without node.started, an external executor opened the run: each envelope stands alone.
    if (cause) this.handedIn = true;
    const c = this.call(e, () => this.handedIn, this.handedIn ? "handed-in" : cause);
    this.repeats(c, r.answer.with);
    const envelope: Envelope = {
      key: r.envelopeId, form: "envelope", outcome: "accepted", kind: r.kind, envelopeId: r.envelopeId, payload: r.payload, events: [refOf(e)],
      rungs: passed({ redaction: redactionNote(r.payload, e.contentTrust), routing: e.type }),
      correlationId: e.causationId, version: r.version, trust: e.contentTrust, rendering: r.rendering,
      size: r.answer.size, index: r.answer.size === undefined ? undefined : (r.answer.index ?? 0),
    };
    c.envelopes.push(envelope);
    this.recordedAt.set(e.sequence, { call: c, envelope });
  }

  /** Duplicate envelopes were recorded by an earlier call and have its outcome. */
  private repeats(c: Call, sequences: number[]): void {
    for (const sequence of sequences) {
      const before = this.recordedAt.get(sequence);
      if (!before || before.call === c || c.envelopes.some((x) => x.envelopeId === before.envelope.envelopeId)) continue;
      c.envelopes.push({
        ...before.envelope, key: `${before.envelope.key}~${c.ordinal}`, outcome: "cached",
        rungs: passed({ dedup: `the outcome of attempt ${before.call.attempt}, event ${sequence}`, routing: "no new events" }),
      });
    }
  }

  /** Adds further events of a recorded envelope, such as the interrupt of a clarification. */
  private companion(e: RunEvent): void {
    if (e.causationId === undefined) return;
    for (const c of this.current?.calls ?? []) {
      for (const x of c.envelopes) {
        if (x.correlationId === e.causationId && x.outcome === "accepted") this.routed(x, refOf(e));
      }
    }
  }

  private routed(x: Envelope, event: EventRef): void {
    if (x.events.some((known) => known.sequence === event.sequence)) return;
    x.events.push(event);
    const routing = x.rungs.at(-1);
    if (routing?.state === "passed") routing.note = x.events.map((known) => known.type).join(", ");
  }

  private completed(e: RunEvent): void {
    const x = this.current;
    if (!x) return;
    const outputs = record(record(e.payload).outputs);
    x.outputs = outputs;
    const c = x.calls.at(-1);
    if (c && c.envelopes.length === 0 && !("envelopes" in outputs)) {
      c.envelopes.push({ key: this.key(c), form: "value", outcome: "accepted", payload: outputs.output, rungs: ofValue(), events: [refOf(e)] });
      for (const before of x.calls) before.envelopes = before.envelopes.map(asValue);
    }
    this.end("completed");
  }

  private failed(e: RunEvent): void {
    const error = errorOf(e.payload);
    if (!this.current) this.begin(e);
    const x = this.current;
    const c = x?.calls.at(-1);
    const refusal = error && refusalOf(error);
    if (c && refusal && !c.failure && !c.truncated && !c.refusal) {
      const breach = c.envelopes.at(-1);
      if (refusal.gate === "limits" && breach?.outcome === "refused") breach.events.push(refOf(e));
      else this.refuses(c, refusal, { events: [refOf(e)], correlationId: e.causationId });
    }
    if (c && x?.exhausted && refusal) c.envelopes.forEach((v) => v.outcome === "refused" && v.rungs.forEach((r) => r.state === "refused" && (r.code = error.code)));
    this.end("failed", error);
  }
}

/** A call has ended once its usage is recorded. */
const answeredBefore = (c: Call): boolean => c.usage !== undefined;

const words: Record<string, string> = { envelopes: "envelopes per turn", schema: "schema rounds", clarification: "questions per node" };

/** Failures of a node with an outputSchema are values, too, and not envelopes. */
function asValue(x: Envelope): Envelope {
  const stop = x.rungs.find((r) => r.state === "refused");
  if (x.form === "value" || !stop) return x;
  const { gate: _gate, state: _state, ...wrong } = stop;
  return { ...x, form: "value", rungs: ofValue(wrong) };
}

function failureOf(reason: unknown, detail: unknown): Failure {
  return { reason: text(reason) ?? "unknown", detail: text(detail) };
}

/** Counts the redaction markers. */
export function redactions(v: unknown): number {
  if (typeof v === "string") return v.match(/\[REDACTED:[^\]]*\]/g)?.length ?? 0;
  if (Array.isArray(v)) return v.reduce<number>((n, x) => n + redactions(x), 0);
  if (typeof v === "object" && v !== null) return Object.entries(v).reduce((n, [k, x]) => n + redactions(k) + redactions(x), 0);
  return 0;
}

function redactionNote(payload: unknown, trust: string | undefined): string {
  const n = redactions(payload);
  const taken = n === 0 ? "nothing redacted" : n === 1 ? "1 secret redacted" : `${n} secrets redacted`;
  return trust === "untrusted" ? `${taken}; tagged untrusted` : taken;
}

