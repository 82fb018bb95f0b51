import type { components } from "../../api/schema";

type System = Pick<components["schemas"]["GetSystemResult"], "now" | "queue" | "readModel">;

/** More waiting runs, or records behind the log, than a busy host has. */
const many = 1000;
// A reading soon after another shows no progress on a healthy host either.
const leastApart = 2500;

/** The last reading, and an earlier one to compare with. */
export type Readings<S extends System = System> = { before?: S | undefined; last?: S | undefined };

export function withReading<S extends System>(readings: Readings<S>, next: S): Readings<S> {
  const { last } = readings;
  return last && Date.parse(next.now) - Date.parse(last.now) < leastApart ? readings : { before: last, last: next };
}

/**
 * Reports which figures need attention. A busy host always has some runs that wait and some records that its read model
 * lacks, so a few count only when nothing happens between two readings.
 */
export function alarms(before: System | undefined, { queue, readModel }: System): { waiting: boolean; behind: boolean } {
  const idle = before?.queue !== undefined && before.queue.waiting > 0 && before.queue.taken === 0 && queue?.taken === 0;
  const stuck = before?.readModel !== undefined && before.readModel.behind > 0 && before.readModel.applied === readModel?.applied;
  const waiting = queue?.waiting ?? 0;
  const behind = readModel?.behind ?? 0;
  return { waiting: waiting > many || (waiting > 0 && idle), behind: behind > many || (behind > 0 && stuck) };
}
