import type { RunSnapshot } from "../../api/model";
import { useConfig } from "../../api/session";
import type { RunLog } from "../../live/runLog";
import { useNow } from "../../ui/time";
import { stalledSince } from "./stalled";

/**
 * Returns the time of the last activity of a stalled run, or undefined. The host sets the limit (stallsAt); activity
 * after the snapshot postpones it.
 */
export function useStalled(snapshot: RunSnapshot | undefined, log: RunLog): number | undefined {
  const { stalledAfterMs } = useConfig();
  const now = useNow();
  return stalledSince(snapshot, log.events.at(-1)?.timestamp, stalledAfterMs, now);
}
