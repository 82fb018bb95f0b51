import { createContext, useContext, useSyncExternalStore } from "react";
import { RunLog } from "./runLog";

// Caches the logs of the last runs, so that returning to one shows it immediately.
const kept = new Map<string, RunLog>();
const maxLogs = 4;

export function runLog(runId: string): RunLog {
  let log = kept.get(runId);
  if (log) kept.delete(runId);
  else log = new RunLog(runId);
  kept.set(runId, log);
  for (const old of kept.keys()) {
    if (kept.size <= maxLogs) break;
    kept.delete(old);
  }
  return log;
}

/** The log read from a file, if the page shows one. Its run cannot be changed. */
export const RecordedLog = createContext<RunLog | undefined>(undefined);

export const useIsRecorded = (): boolean => useContext(RecordedLog) !== undefined;

/** Returns the live event log of a run. The object stays the same; its version changes as it grows. */
export function useRunLog(runId: string): RunLog {
  const recorded = useContext(RecordedLog);
  const log = recorded?.runId === runId ? recorded : runLog(runId);
  useSyncExternalStore(log.subscribe, () => log.version);
  return log;
}
