import type { Json } from "../api/json";
import type { Call, Envelope, Execution } from "./model";
import { documentIn } from "./documentIn";
import { callKey } from "./story";

/** A column of the ladder: a document, or an attempt without one. */
export interface Column {
  key: string;
  call: Call;
  envelope: Envelope | undefined;
}

export function columnsOf(x: Execution): Column[] {
  return x.calls.flatMap((call): Column[] =>
    call.envelopes.length === 0 ? [{ key: callKey(x, call), call, envelope: undefined }] : call.envelopes.map((envelope) => ({ key: envelope.key, call, envelope })),
  );
}

/** Returns the column to select first: the deciding one. */
export function decisive(x: Execution, columns: Column[]): Column | undefined {
  const last = columns.at(-1);
  return x.result === "completed" ? last : (columns.findLast((c) => c.envelope?.outcome === "refused") ?? last);
}

/** Returns the document of a column: the recorded payload or the model's output. Without a kind, it uses the envelope's kind. */
export function documentOf({ call, envelope }: Column, kind = envelope?.kind): Json | undefined {
  const taken = envelope?.outcome === "accepted" || envelope?.outcome === "cached";
  return taken ? (envelope.payload as Json | undefined) : documentIn(call.text, kind);
}
