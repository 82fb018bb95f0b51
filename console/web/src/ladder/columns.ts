import type { Json } from "../api/json";
import type { Call, Envelope, Execution } from "./model";
import { documentIn } from "./documentIn";
import { callKey } from "./story";

/** One way down the ladder: a document, or an attempt that gave none. */
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

/** The column that a reader wants to see first: the one that decided. */
export function decisive(x: Execution, columns: Column[]): Column | undefined {
  const last = columns.at(-1);
  return x.result === "completed" ? last : (columns.findLast((c) => c.envelope?.outcome === "refused") ?? last);
}

/** The document of a column, as far as the run has it: what was taken, or what the model said. Without a kind, that of its envelope. */
export function documentOf({ call, envelope }: Column, kind = envelope?.kind): Json | undefined {
  const taken = envelope?.outcome === "accepted" || envelope?.outcome === "cached";
  return taken ? (envelope.payload as Json | undefined) : documentIn(call.text, kind);
}
