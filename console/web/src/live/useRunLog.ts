import { createContext, useContext, useSyncExternalStore } from "react";
import { RunLog } from "./runLog";

// A log is kept for the last few runs, so that going back to one shows it at once.
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

/** The log that was read from a file, where a page shows one. Nothing can be done to its run. */
export const RecordedLog = createContext<RunLog | undefined>(undefined);

export const useIsRecorded = (): boolean => useContext(RecordedLog) !== undefined;

/** The event log of a run, live. The log is the same object for a run; its version tells that it has grown. */
export function useRunLog(runId: string): RunLog {
  const recorded = useContext(RecordedLog);
  const log = recorded?.runId === runId ? recorded : runLog(runId);
  useSyncExternalStore(log.subscribe, () => log.version);
  return log;
}
