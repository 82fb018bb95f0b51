import type { RunSnapshot } from "../../api/model";

/**
 * Returns the time of the last activity of a stalled run, in ms; undefined if the run is not stalled or the host does
 * not report it.
 */
export function stalledSince(snapshot: RunSnapshot | undefined, lastEvent: string | undefined, afterMs: number, now: number): number | undefined {
  const standing = snapshot?.waybill;
  if (snapshot === undefined || standing?.stallsAt === undefined) return undefined;
  const lastActivity = Math.max(...[lastEvent, standing.lastEventAt, snapshot.createdAt].map((at) => Date.parse(at ?? "") || 0));
  return now > Math.max(Date.parse(standing.stallsAt), lastActivity + afterMs) ? lastActivity : undefined;
}
