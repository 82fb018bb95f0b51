import { isTerminal, type RunSnapshot } from "../../api/model";
import { useConfig } from "../../api/session";
import type { RunLog } from "../../live/runLog";
import { useNow } from "../../ui/time";

const busy = new Set(["pending", "running", "cancelling"]);

// These wait for a time or for another run, and are silent meanwhile.
const patient = new Set(["core.delay", "core.subWorkflow"]);

/**
 * Since when a run that the host itself should move has not moved, or undefined. How long is too long the host says
 * (stalledAfterMs); who waits for a person, a timer or another run does not stall.
 */
export function useStalled(snapshot: RunSnapshot | undefined, log: RunLog): number | undefined {
  const { stalledAfterMs } = useConfig();
  const now = useNow();
  if (!snapshot || stalledAfterMs <= 0 || isTerminal(snapshot.status) || !busy.has(snapshot.status)) return undefined;
  const active = Object.values(snapshot.nodeStates ?? {}).filter((node) => node.status === "running");
  if (active.length > 0 && active.every((node) => patient.has(node.typeId ?? ""))) return undefined;
  const last = log.events.at(-1);
  const heard = Date.parse(last?.timestamp ?? snapshot.createdAt ?? "");
  const due = heard + (last?.type === "node.retried" ? Number(last.payload.delayMs ?? 0) : 0);
  return now - due > stalledAfterMs ? heard : undefined;
}
