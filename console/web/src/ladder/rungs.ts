import { gates, type Gate, type Rung } from "./model";

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

/** Returns the gate that rejected an envelope. */
export function stoppedAt(rungs: Rung[]): Rung | undefined {
  return rungs.find((r) => r.state === "refused");
}
