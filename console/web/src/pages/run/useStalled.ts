import type { RunSnapshot } from "../../api/model";
import { useConfig } from "../../api/session";
import type { RunLog } from "../../live/runLog";
import { useNow } from "../../ui/time";
import { stalledSince } from "./stalled";

/**
 * Since when a run that the host itself should move has not moved, or undefined. When that counts as stalled the host
 * says (stallsAt), and what was heard since the snapshot puts it off.
 */
export function useStalled(snapshot: RunSnapshot | undefined, log: RunLog): number | undefined {
  const { stalledAfterMs } = useConfig();
  const now = useNow();
  return stalledSince(snapshot, log.events.at(-1)?.timestamp, stalledAfterMs, now);
}
