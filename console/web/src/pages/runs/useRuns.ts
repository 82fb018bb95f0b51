import { useInfiniteQuery, useQueryClient, type InfiniteData } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, body } from "../../api/client";
import { parseJson } from "../../api/json";
import { isTerminal, type RunRow } from "../../api/model";
import { announce } from "../../ui/announce";
import { hostURL } from "../../api/base";
import { openStream } from "../../live/link";
import type { LiveState } from "../../live/sse";
import { fits } from "./filter";
import { isNewestFirst, type View } from "./query";

type Page = { runs: RunRow[]; nextCursor?: string };
type Pages = InfiniteData<Page, string | undefined>;

const pageSize = 50;
// Polling interval without a feed.
const pollEvery = 5000;
// Reload interval with a feed while runs are active: waiting for a limit, stalling and quarantine cause no event.
const refreshEvery = 30_000;
// Counts are loaded at most this often while runs change.
const countEvery = 2000;

export type Runs = {
  rows: RunRow[];
  loading: boolean;
  error: Error | null;
  /** When the rows were last current. */
  asOf: number;
  live: LiveState;
  more: (() => void) | undefined;
  loadingMore: boolean;
  again: () => void;
  /** Grows with each change of a run that may change counts. */
  changes: number;
};

/** Returns the runs of a view, kept up to date. */
export function useRuns(view: View): Runs {
  const { filter, sort, order } = view;
  const client = useQueryClient();
  const [live, setLive] = useState<LiveState>("connecting");
  const [polling, setPolling] = useState(false);
  const [changes, setChanges] = useState(0);
  const query = useInfiniteQuery({
    queryKey: ["runs", filter, sort, order],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => loadPage({ filter, sort, order }, pageParam, signal),
    getNextPageParam: (last: Page) => last.nextCursor,
    refetchInterval: (q) => (polling ? pollEvery : q.state.data?.pages.some((page) => page.runs.some((row) => !isTerminal(row.status))) ? refreshEvery : false),
    refetchOnMount: "always",
  });

  useEffect(() => {
    const again = (): void => void client.invalidateQueries({ queryKey: ["runs", filter, sort, order] });
    let soon: ReturnType<typeof setTimeout> | undefined;
    let counting: ReturnType<typeof setTimeout> | undefined;
    const close = openStream(`${hostURL}/v1/runs:watch`, undefined, {
      onFrames: (frames) => {
        let added = 0;
        let unsure = false;
        for (const frame of frames) {
          if (frame.event !== "run") continue;
          const row = parseJson(frame.data) as unknown as RunRow;
          // In another order, where a new row belongs is known to the host only.
          const fit = isNewestFirst({ filter, sort, order }) ? fits(row, filter) : fits(row, filter) === false ? false : undefined;
          counting ??= setTimeout(() => {
            counting = undefined;
            setChanges((n) => n + 1);
          }, countEvery);
          client.setQueryData<Pages>(["runs", filter, sort, order], (pages) => {
            const [next, is] = withRow(pages, row, fit);
            if (is === "added") added++;
            // A load that is under way may replace the change by an older row.
            if (is === "unsure" || (is === "changed" && client.isFetching({ queryKey: ["runs", filter, sort, order], exact: true }) > 0)) unsure = true;
            return next;
          });
        }
        if (added > 0) announce(added === 1 ? "One new run" : `${added} new runs`);
        if (unsure) soon ??= setTimeout(() => ((soon = undefined), again()), 500);
      },
      onState: (state) => {
        setLive(state);
        // Changes before the feed was open require a reload.
        if (state === "live") again();
        setPolling(state === "polling");
      },
      onClosed: () => undefined,
      onRefused: () => {
        setLive("polling");
        setPolling(true);
      },
    });
    return () => {
      clearTimeout(soon);
      clearTimeout(counting);
      close();
    };
  }, [client, filter, sort, order]);

  return {
    rows: query.data?.pages.flatMap((page) => page.runs) ?? [],
    loading: query.isPending,
    error: query.error,
    asOf: query.dataUpdatedAt,
    live,
    more: query.hasNextPage ? () => void query.fetchNextPage() : undefined,
    loadingMore: query.isFetchingNextPage,
    again: () => void query.refetch(),
    changes,
  };
}

async function loadPage({ filter, sort, order }: View, cursor: string | undefined, signal: AbortSignal): Promise<Page> {
  const query = { limit: pageSize, ...(filter ? { filter } : {}), ...(sort === "created" ? {} : { sort }), ...(order === "desc" ? {} : { order }), ...(cursor ? { cursor } : {}) };
  return body(api.GET("/v1/runs", { params: { query }, signal }));
}

// A visible row is updated in place, even if it no longer matches: rows must not vanish under the pointer. The next
// load removes it. A new row goes to the top if it certainly matches.
function withRow(pages: Pages | undefined, row: RunRow, fit: boolean | undefined): [Pages | undefined, "changed" | "added" | "unsure" | "other"] {
  if (!pages) return [pages, "other"];
  const at = pages.pages.findIndex((page) => page.runs.some((r) => r.runId === row.runId));
  if (at >= 0) {
    const changed = pages.pages.map((page, i) => (i === at ? { ...page, runs: page.runs.map((r) => (r.runId === row.runId ? row : r)) } : page));
    return [{ ...pages, pages: changed }, "changed"];
  }
  const first = pages.pages[0];
  if (fit === false || !first) return [pages, "other"];
  if (fit === undefined) return [pages, "unsure"];
  const newest = first.runs[0];
  if (newest && newest.createdAt > row.createdAt) return [pages, "other"]; // an older run, not loaded yet
  return [{ ...pages, pages: [{ ...first, runs: [row, ...first.runs] }, ...pages.pages.slice(1)] }, "added"];
}
