import type { RunSnapshot } from "../../api/model";

/** Since when a run is silent that should not be, in ms; undefined: it is not, or its host does not say. */
export function stalledSince(snapshot: RunSnapshot | undefined, lastEvent: string | undefined, afterMs: number, now: number): number | undefined {
  if (snapshot?.stallsAt === undefined) return undefined;
  const heard = Math.max(...[lastEvent, snapshot.lastEventAt, snapshot.createdAt].map((at) => Date.parse(at ?? "") || 0));
  return now > Math.max(Date.parse(snapshot.stallsAt), heard + afterMs) ? heard : undefined;
}
