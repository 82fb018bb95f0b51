// Types of the ladder: the outcome of each document of a model, gate by gate (OpenWOP envelope contract §6).

/** The gates in the contract's order. */
export const gates = ["shape", "kind", "payload", "contract", "limits", "redaction", "dedup", "routing"] as const;

export type Gate = (typeof gates)[number];

/** The question of each gate, without contract terms. */
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

/** One validation error. It never contains a value of the model. */
export interface Problem {
  message: string;
  /** JSON Pointer into the schema, if a schema rule was violated. */
  schemaPointer?: string | undefined;
  /** JSON Pointer into the payload; `*` matches any array element. */
  instancePointer?: string | undefined;
}

export interface Rung {
  gate: Gate;
  state: RungState;
  /** Note on a passed gate. */
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

/** accepted: recorded; cached: earlier outcome, no new events; discarded: rejected, and the node continued. */
export type Outcome = "accepted" | "cached" | "refused" | "discarded";

/** One document of a model, with the gates it passed. */
export interface Envelope {
  /** Stable within the run, also for a document without an id. */
  key: string;
  /** envelope: all eight gates; value: only the node's outputSchema. */
  form: "envelope" | "value";
  outcome: Outcome;
  kind?: string | undefined;
  envelopeId?: string | undefined;
  correlationId?: string | undefined;
  /** The kind's version used for validation. */
  version?: string | undefined;
  trust?: string | undefined;
  payload?: unknown | undefined;
  rendering?: Rendering | undefined;
  /** Its index in an answer with several documents. */
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

/** The cause of a call. */
export type Cause = "first" | "retry" | "prose-fallback" | "next-turn" | "after-answer" | "handed-in";

export interface Failure {
  reason: string;
  detail?: string | undefined;
}

/** One model call. */
export interface Call {
  /** Number of the call within the execution, from 1. */
  ordinal: number;
  /** Number of the attempt; a further turn starts a call but no attempt. */
  attempt: number;
  cause: Cause;
  /** The failure that caused a retry. */
  because?: Failure | undefined;
  usage?: Usage | undefined;
  truncated?: { stopReason: string; outputTokens?: number | undefined; partial: boolean };
  refusal?: { text?: string | undefined; category?: string | undefined; withheld: boolean };
  recovery?: { path: string; byteOffset?: number | undefined };
  failure?: Failure | undefined;
  /** The streamed output, without secrets. */
  text?: string | undefined;
  envelopes: Envelope[];
  /** Sequences of the first and last event of the call. */
  from: number;
  to: number;
}

export interface Substitution {
  from: { provider: string; model: string };
  to: { provider: string; model: string };
  missing: string[];
  /** The host does not disclose the fallback model. */
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

/** One execution of a node, with its model calls. */
export interface Execution {
  nodeId: string;
  typeId?: string | undefined;
  /** 1 for the first; node retries add further ones. */
  number: number;
  substitution?: Substitution | undefined;
  insufficient?: Insufficiency | undefined;
  calls: Call[];
  result: Result;
  error?: NodeError | undefined;
  exhausted?: { totalAttempts: number; reason: string };
  /** A limit breach without an envelope. A breach by an envelope is at its gate. */
  capBreached?: { kind: string; limit: number; observed: number };
  outputs?: Record<string, unknown> | undefined;
  from: number;
  to: number;
}
