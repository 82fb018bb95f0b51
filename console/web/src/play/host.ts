// Runs of one node: the host executes them like any run, and nothing else of their workflow.
import { useQueries, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api, body, bodyAs } from "../api/client";
import { stringifyJson } from "../api/json";
import { isTerminal, type RunRow, type RunSnapshot } from "../api/model";
import { useRepeat } from "../api/repeat";
import type { components } from "../api/schema";
import type { Execution, RunView } from "../ladder/model";
import type { Edit, Members } from "./edits";

export type NodeInput = Omit<components["schemas"]["ViewNodeInput"], "config" | "inputs"> & { config: Members; inputs: Members };

/** Tries are found by their tags. */
export const playground = "playground";
/** In characters, as the host counts them. */
const maxTag = 256;

/** Returns the tag of a node's tries. A tag that would be too long ends in a hash, so that each node has its own. */
export function tagOf(runId: string, nodeId: string): string {
  const tag = `${playground}:${runId}/${nodeId}`;
  const characters = [...tag];
  if (characters.length <= maxTag) return tag;
  const end = `#${hash(tag)}`;
  return characters.slice(0, maxTag - end.length).join("") + end;
}

// FNV-1a with 64 bits. The hashes of the browser need HTTPS, and are not there at once.
function hash(s: string): string {
  let h = 0xcbf29ce484222325n;
  for (const b of new TextEncoder().encode(s)) h = BigInt.asUintN(64, (h ^ BigInt(b)) * 0x100000001b3n);
  return h.toString(16).padStart(16, "0");
}

const variantTag = /^variant:(\d+)$/;
export const variantOf = (row: Pick<RunRow, "tags">): number => Number(row.tags.map((t) => variantTag.exec(t)?.[1]).find((n) => n !== undefined) ?? 0);

/** How many tries are shown, and how many one click starts. */
const maxShown = 100;
export const maxTries = 10;

export function useNodeInput(runId: string, nodeId: string, enabled = true) {
  return useQuery({
    queryKey: ["input", runId, nodeId, "last"],
    queryFn: ({ signal }) => bodyAs<NodeInput>(api.GET("/v1/runs/{runId}/nodes/{nodeId}/input", { params: { path: { runId, nodeId } }, signal })),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    enabled,
  });
}

const again = 700;

/** The tries of a node, newest first. While one is at work, the list loads again. */
export function useTries(runId: string, nodeId: string) {
  return useQuery({
    queryKey: ["tries", runId, nodeId],
    queryFn: async ({ signal }) => (await body(api.GET("/v1/runs", { params: { query: { tag: tagOf(runId, nodeId), limit: maxShown } }, signal }))).runs,
    refetchOnMount: "always",
    refetchInterval: (query) => (query.state.data?.some((r) => !isTerminal(r.status)) ? again : false),
  });
}

export type Try = { runId: string; view: RunView | undefined; snapshot: RunSnapshot | undefined };

/** What the host has of runs, once they have ended. */
export function useEnded(rows: readonly RunRow[]): Map<string, Try> {
  const ended = rows.filter((r) => isTerminal(r.status));
  return useQueries({
    queries: ended.map(({ runId }) => ({
      queryKey: ["try", runId],
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Try> => {
        const params = { path: { runId } };
        const [view, snapshot] = await Promise.all([
          body(api.GET("/v1/runs/{runId}:view", { params, signal })) as Promise<RunView>,
          bodyAs<RunSnapshot>(api.GET("/v1/runs/{runId}", { params, signal })),
        ]);
        return { runId, view, snapshot };
      },
      staleTime: Number.POSITIVE_INFINITY,
    })),
    combine: byRun,
  });
}

const byRun = (answers: UseQueryResult<Try>[]): Map<string, Try> => new Map(answers.flatMap(({ data }) => (data ? [[data.runId, data]] : [])));

/** The last execution of a node. */
export const executionIn = (view: RunView | undefined, nodeId: string): Execution | undefined => view?.answers.findLast((x) => x.nodeId === nodeId);

export type Fork = Edit & { only?: boolean; outputs?: Members; tags?: string[] };

/** Returns a function that starts a branch with an edited node, or a run of the node alone. */
export function useForkNode(runId: string, nodeId: string): (fork: Fork) => Promise<string> {
  const repeat = useRepeat();
  return async ({ tags, ...edit }) => {
    const request = { ...edit, ...(tags ? { runOptionsOverlay: { tags } } : {}) };
    const made = await repeat(stringifyJson(request), (key) =>
      body(api.POST("/v1/runs/{runId}/nodes/{nodeId}/fork", { params: { path: { runId, nodeId }, header: { "Idempotency-Key": key } }, body: request })),
    );
    return made.runId;
  };
}
