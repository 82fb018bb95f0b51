import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, type ReactNode } from "react";
import { api, body } from "../api/client";
import type { RunView } from "../ladder/model";
import { ErrorNote } from "../ui/ErrorNote";
import type { RunLog } from "./runLog";
import { useIsRecorded } from "./useRunLog";

// The delay of a reload after new events, after chunks of an answer only, and after an error. Fast consecutive events
// cause one request.
const settle = 150;
const slow = 1000;
const failed = 5000;

/** null: a file without a view. */
export type ViewQuery = { data: RunView | null | undefined; error: Error | null; refetch: () => unknown };

export const viewKey = (runId: string, at?: number): readonly unknown[] => ["view", runId, at ?? "now"];

/**
 * Returns the host's view of a run: as of the latest events, which reload it one request at a time, or as of one event.
 * While a view loads, the one before stays.
 */
export function useView(log: RunLog, at?: number, enabled = true): ViewQuery {
  const { runId } = log;
  const recorded = useIsRecorded();
  const query = useQuery<RunView | null>({
    queryKey: viewKey(runId, at),
    queryFn: ({ signal }) => body(api.GET("/v1/runs/{runId}:view", { params: { path: { runId }, query: at === undefined ? {} : { at } }, signal })) as Promise<RunView>,
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
  const { data, isFetching, isError, refetch } = query;
  const known = data?.sequence ?? -1;
  const behind = enabled && !recorded && !isFetching && at === undefined && data !== undefined && known < log.last;
  const wait = isError ? failed : behind && log.events.slice(known + 1).some((e) => e.type !== "output.chunk") ? settle : slow;
  useEffect(() => {
    if (!behind) return undefined;
    const timer = setTimeout(() => void refetch({ cancelRefetch: false }), wait);
    return () => clearTimeout(timer);
  }, [behind, wait, refetch]);
  return query;
}

/** Renders a view once it is loaded. */
export function Viewed({ query: { data, error, refetch }, children }: { query: ViewQuery; children: (view: RunView) => ReactNode }): ReactNode {
  return (
    <>
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data && children(data)}
      {data === undefined && !error && <p className="loading">Loading…</p>}
      {data === null && <p className="empty">This file contains only events. The debug bundle of the run has this view, too.</p>}
    </>
  );
}
