import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, bodyAs } from "../../api/client";
import type { RunSnapshot } from "../../api/model";
import type { RunLog } from "../../live/runLog";

const key = (runId: string): readonly string[] => ["run", runId];
// Fast consecutive events cause one request.
const settle = 150;

/** The snapshot of a run, reloaded when events report a change. */
export function useSnapshot(runId: string, log: RunLog) {
  const client = useQueryClient();
  const seen = useRef(log.last);
  const query = useQuery({
    queryKey: key(runId),
    queryFn: ({ signal }) => bodyAs<RunSnapshot>(api.GET("/v1/runs/{runId}", { params: { path: { runId } }, signal })),
  });
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { last } = log;
  useEffect(() => {
    const news = log.events.slice(seen.current + 1).some((event) => event.type !== "output.chunk");
    seen.current = last;
    if (!news) return;
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: key(runId) });
    }, settle);
  }, [client, log, last, runId]);
  return query;
}
