import type { RunSnapshot } from "../../api/model";

/** Since when a run is silent that should not be, in ms; undefined: it is not, or its host does not say. */
export function stalledSince(snapshot: RunSnapshot | undefined, lastEvent: string | undefined, afterMs: number, now: number): number | undefined {
  const standing = snapshot?.waybill;
  if (snapshot === undefined || standing?.stallsAt === undefined) return undefined;
  const lastActivity = Math.max(...[lastEvent, standing.lastEventAt, snapshot.createdAt].map((at) => Date.parse(at ?? "") || 0));
  return now > Math.max(Date.parse(standing.stallsAt), lastActivity + afterMs) ? lastActivity : undefined;
}
