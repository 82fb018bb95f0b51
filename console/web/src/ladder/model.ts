// The words of the ladder: what became of each document that a model gave, gate by gate
// (OpenWOP envelope contract §6).

/** The gates an envelope passes, in the contract's order. */
export const gates = ["shape", "kind", "payload", "contract", "limits", "redaction", "dedup", "routing"] as const;

export type Gate = (typeof gates)[number];

/** What each gate asks, for people who have not read the contract. */
export const asks: Record<Gate, string> = {
  shape: "Is it an envelope, with these members and no others?",
  kind: "Does this host support the kind?",
  payload: "Does the payload satisfy the schema of its kind?",
  contract: "May this node emit the kind?",
  limits: "Is the turn within its limits?",
  redaction: "Secrets are removed, and the content is tagged as trusted or untrusted.",
  dedup: "Is this correlation id new?",
  routing: "Which events does it cause? All or none are recorded.",
};

export type RungState = "passed" | "refused" | "not-reached" | "not-applicable";

/** One thing that was wrong. It never carries a value of the model's. */
export interface Problem {
  message: string;
  /** JSON Pointer into the schema, when a rule of the schema was broken. */
  schemaPointer?: string | undefined;
  /** JSON Pointer into the payload; `*` stands for any element of an array. */
  instancePointer?: string | undefined;
}

export interface Rung {
  gate: Gate;
  state: RungState;
  /** What is worth saying of a gate that was passed. */
  note?: string | undefined;
  code?: string | undefined;
  reason?: string | undefined;
  problems?: Problem[] | undefined;
  refusedKind?: string | undefined;
  acceptedKinds?: string[] | undefined;
}

export interface EventRef {
  eventId: string;
  sequence: number;
  type: string;
}

/** accepted: recorded; cached: the earlier outcome, nothing new; discarded: refused, and the node went on. */
export type Outcome = "accepted" | "cached" | "refused" | "discarded";

/** One document that a model gave, and how far it came. */
export interface Envelope {
  /** Stable within the run, also for a document that never got an id. */
  key: string;
  /** envelope: the eight gates; value: an answer that only has to satisfy the node's outputSchema. */
  form: "envelope" | "value";
  outcome: Outcome;
  kind?: string | undefined;
  envelopeId?: string | undefined;
  correlationId?: string | undefined;
  /** The version of the kind by which the payload was judged. */
  version?: string | undefined;
  trust?: string | undefined;
  payload?: unknown | undefined;
  rendering?: Rendering | undefined;
  /** Its place in an answer that held several. */
  index?: number | undefined;
  size?: number | undefined;
  rungs: Rung[];
  events: EventRef[];
}

export interface Rendering {
  display?: string | undefined;
  mimeType?: string | undefined;
  lang?: string | undefined;
  alt?: string | undefined;
  title?: string | undefined;
}

export interface Usage {
  provider: string;
  model: string;
  inputTokens: bigint;
  outputTokens: bigint;
  costUsd?: number | undefined;
}

/** Why a call was made. */
export type Cause = "first" | "retry" | "prose-fallback" | "next-turn" | "after-answer" | "handed-in";

export interface Failure {
  reason: string;
  detail?: string | undefined;
}

/** One call of the model. */
export interface Call {
  /** Number of the call within the execution, from 1. */
  ordinal: number;
  /** Number of the attempt; a further turn begins a call and no attempt. */
  attempt: number;
  cause: Cause;
  /** What made the host ask again, for a retry: the failure of the call before. */
  because?: Failure | undefined;
  usage?: Usage | undefined;
  truncated?: { stopReason: string; outputTokens?: number | undefined; partial: boolean };
  refusal?: { text?: string | undefined; category?: string | undefined; withheld: boolean };
  recovery?: { path: string; byteOffset?: number | undefined };
  failure?: Failure | undefined;
  /** What the model said, as far as it was streamed; secrets are out of it. */
  text?: string | undefined;
  envelopes: Envelope[];
  /** Sequences of the first and last event that belong to the call. */
  from: number;
  to: number;
}

export interface Substitution {
  from: { provider: string; model: string };
  to: { provider: string; model: string };
  missing: string[];
  /** The host keeps from readers what was asked instead. */
  hidden: boolean;
  event: EventRef;
}

export interface Insufficiency {
  provider: string;
  model: string;
  missing: string[];
  fallbackAttempted: boolean;
  event: EventRef;
}

export interface NodeError {
  code: string;
  message: string;
  details?: Record<string, unknown> | undefined;
}

export type Result = "open" | "waiting" | "completed" | "failed" | "retried" | "cancelled";

/** One time that a node was executed: all that its model was asked. */
export interface Execution {
  nodeId: string;
  typeId?: string | undefined;
  /** 1 for the first; the node's own retries make further ones. */
  number: number;
  substitution?: Substitution | undefined;
  insufficient?: Insufficiency | undefined;
  calls: Call[];
  result: Result;
  error?: NodeError | undefined;
  exhausted?: { totalAttempts: number; reason: string };
  /** The breach that exhaustion also is; a breach by an envelope stands at its gate. */
  capBreached?: { kind: string; limit: number; observed: number };
  outputs?: Record<string, unknown> | undefined;
  from: number;
  to: number;
}
