import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { RunSnapshot } from "../../api/model";
import { isStatus } from "../../api/errors";
import { RunLog } from "../../live/runLog";
import { snapshotAt } from "../../live/snapshotAt";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { Status } from "../../ui/Status";
import { clock, duration } from "../../ui/time";
import { escapeHidden } from "../../ui/escape";

// Delay before the slider's position goes to the URL and the host.
const rest = 200;

/** A run as of one of its events. undefined and the last event mean the current state. */
export type Past = {
  /** The selected event; undefined shows the current state. */
  at: number | undefined;
  /** The log up to that event. */
  log: RunLog;
  /** The page shows an earlier state. */
  past: boolean;
  /** The state as of that event, once loaded. */
  snapshot: RunSnapshot | undefined;
  error: unknown;
  move: (to: number | undefined) => void;
};

/** Shows a run as of an event that the URL names. */
export function usePast(log: RunLog, now: RunSnapshot | undefined, named: number | undefined, go: (at: number | undefined) => void): Past {
  // The slider's position while the URL still has another one.
  const [moved, setMoved] = useState<{ to: number | undefined }>();
  const at = moved ? moved.to : named;
  const goes = useRef(go);
  useEffect(() => {
    goes.current = go;
  });
  useEffect(() => {
    if (!moved) return undefined;
    const timer = setTimeout(() => {
      goes.current(moved.to);
      setMoved(undefined);
    }, rest);
    return () => clearTimeout(timer);
  }, [moved]);
  const past = at !== undefined && at < log.last;
  const shown = useMemo(() => (past ? new RunLog(log.runId, log.events.slice(0, at + 1)) : log), [log, past, at]);
  const { data, error } = useQuery({
    queryKey: ["run", log.runId, "at", named],
    queryFn: ({ signal }) => snapshotAt(log.runId, named ?? 0, signal),
    enabled: past && at === named,
    staleTime: Number.POSITIVE_INFINITY, // past states never change
    gcTime: 60_000,
    retry: false,
  });
  const loaded = past && at === named;
  return { at, log: shown, past, snapshot: past ? (loaded ? data : undefined) : now, error: loaded ? error : undefined, move: (to) => setMoved({ to }) };
}

type Props = { log: RunLog; past: Past; createdAt: string | undefined };

/** Opens the slider. It keeps its place, so that the content below does not move. */
export function LookBack({ log, past: { at, move } }: { log: RunLog; past: Past }): ReactNode {
  return (
    <button type="button" className="quiet" disabled={log.last < 1 || at !== undefined} onClick={() => move(log.last)}>
      Look back…
    </button>
  );
}

/** A slider over the events of a run. */
export function Scrubber({ log, past: { at, past, snapshot, error, move }, createdAt }: Props): ReactNode {
  if (at === undefined || log.last < 1) return null;
  const here = Math.min(at, log.last);
  const event = log.events[here];
  const since = event && createdAt ? Math.max(0, Date.parse(event.timestamp) - Date.parse(createdAt)) : undefined;
  const words = event ? `#${here} of ${log.last}, ${escapeHidden(event.type)}${since === undefined ? "" : `, ${duration(since)} after the run was created`}` : `#${here}`;
  return (
    <section className="scrubber" aria-label="Look back">
      <div className="scrub-line">
        <button type="button" className="quiet" aria-label="One event back" disabled={here === 0} onClick={() => move(here - 1)}>
          <Icon name="left" />
        </button>
        <input type="range" min={0} max={log.last} value={here} aria-label="Show the run as of event" aria-valuetext={words} onChange={(e) => move(Number(e.target.value))} />
        <button type="button" className="quiet" aria-label="One event forward" disabled={here === log.last} onClick={() => move(here + 1)}>
          <Icon name="right" />
        </button>
        <button type="button" onClick={() => move(undefined)}>
          Back to now
        </button>
      </div>
      <p className="scrub-words">
        <span>{words}</span>
        {event && <span className="dim">{clock(event.timestamp)}</span>}
        {snapshot && <Status status={snapshot.status} />}
        {past && <span className="dim">The views below show the run as of this event. The header shows its current state.</span>}
      </p>
      {error !== undefined && error !== null && (isStatus(error, 400, 404, 501) ? <p className="dim small">This host does not provide past states. Only the events up to this one are shown.</p> : <ErrorNote error={error} />)}
    </section>
  );
}
