import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import type { RunView } from "../../ladder/model";

/** Returns the views of runs that this run started. They are loaded again after each event of this run. */
export function useChildViews(ids: readonly string[], sequence: number): Map<string, RunView> {
  return useQueries({
    queries: ids.map((runId) => ({
      queryKey: ["view", runId, "within", sequence],
      queryFn: ({ signal }: { signal: AbortSignal }) => body(api.GET("/v1/runs/{runId}:view", { params: { path: { runId } }, signal })) as Promise<RunView>,
      staleTime: Number.POSITIVE_INFINITY,
      placeholderData: keepPreviousData,
      retry: false, // the run may be gone
    })),
    combine: (found) => new Map(found.flatMap(({ data }) => (data ? [[data.runId, data] as const] : []))),
  });
}
