import { isTerminal, type RunSnapshot } from "../../api/model";
import { useConfig } from "../../api/session";
import type { RunLog } from "../../live/runLog";
import { useNow } from "../../ui/time";

const busy = new Set(["pending", "running", "cancelling"]);

/**
 * Since when a run that should move has not, or undefined. The host decides how long is too long (stalledAfterMs); a run that
 * waits for somebody, or is paused, does not stall.
 */
export function useStalled(snapshot: RunSnapshot | undefined, log: RunLog): number | undefined {
  const { stalledAfterMs } = useConfig();
  const now = useNow();
  if (!snapshot || isTerminal(snapshot.status) || !busy.has(snapshot.status)) return undefined;
  const last = Math.max(Date.parse(log.events.at(-1)?.timestamp ?? ""), Date.parse(snapshot.createdAt ?? "")) || Date.parse(snapshot.createdAt ?? "");
  return Number.isFinite(last) && now - last > stalledAfterMs ? last : undefined;
}
