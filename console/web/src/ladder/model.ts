// Types of the run's view that the host folds, and the gates of the accept pipeline (OpenWOP envelope contract §6).
import type { components } from "../api/schema";

type Schemas = components["schemas"];
/** Optional members may also be undefined. */
type Loose<T> = { [K in keyof T]: object extends Pick<T, K> ? T[K] | undefined : T[K] };

export type RunView = Schemas["ViewRun"];
export type Execution = Schemas["ViewExecution"];
export type Call = Schemas["ViewCall"];
export type Envelope = Schemas["ViewEnvelope"];
export type Problem = Loose<Schemas["ViewProblem"]>;
export type Rung = Loose<Omit<Schemas["ViewGate"], "problems">> & { problems?: Problem[] | undefined };
export type Gate = Rung["gate"];
/** An outcome in one sentence. */
export type Story = Loose<Pick<Execution, "tone" | "headline" | "code" | "detail">>;

/** The gates in the contract's order. */
export const gates = ["shape", "kind", "payload", "contract", "limits", "redaction", "dedup", "routing"] as const satisfies Gate[];

/** The number of a gate, from 1. */
export const gateNumber = (gate: Gate): number => gates.indexOf(gate) + 1;

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

export interface Rendering {
  display?: string | undefined;
  mimeType?: string | undefined;
  lang?: string | undefined;
  alt?: string | undefined;
  title?: string | undefined;
}
