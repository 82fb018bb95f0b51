// Workflows, their versions and their statistics, as the API has them.
import { useInfiniteQuery, useQueries, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api, body, bodyAs } from "../api/client";
import { stringifyJson } from "../api/json";
import type { components } from "../api/schema";
import type { Definition } from "./definition";

export type WorkflowRow = components["schemas"]["WorkflowSummary"];
export type Statistics = components["schemas"]["WorkflowStatistics"];
export type Versions = components["schemas"]["ListWorkflowVersionsResult"];

const pageSize = 200;
/** The host's limit of workflows in one request for statistics. */
const statisticsSize = 20;

/** The definitions that the tenant sees, by id. */
export function useWorkflows() {
  return useInfiniteQuery({
    queryKey: ["workflows"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => body(api.GET("/v1/workflows", { params: { query: { limit: pageSize, ...(pageParam ? { cursor: pageParam } : {}) } }, signal })),
    getNextPageParam: (last: { nextCursor?: string }) => last.nextCursor,
    refetchOnMount: "always",
  });
}

/** Statistics by workflow id. A workflow is missing until its request is answered. */
export function useStatistics(ids: readonly string[]): { of: Map<string, Statistics>; error: Error | null } {
  const batches: string[][] = [];
  for (let at = 0; at < ids.length; at += statisticsSize) batches.push(ids.slice(at, at + statisticsSize));
  return useQueries({
    queries: batches.map((workflowId) => ({
      queryKey: ["workflow-statistics", ...workflowId],
      queryFn: ({ signal }: { signal: AbortSignal }) => body(api.GET("/v1/workflows:statistics", { params: { query: { workflowId } }, signal })),
      refetchOnMount: "always" as const,
    })),
    combine: merged,
  });
}

function merged(answers: UseQueryResult<{ workflows?: Statistics[] } | undefined>[]): { of: Map<string, Statistics>; error: Error | null } {
  const of = new Map<string, Statistics>();
  for (const { data } of answers) for (const one of data?.workflows ?? []) of.set(one.workflowId, one);
  return { of, error: answers.find((a) => a.error)?.error ?? null };
}

/** The versions of a workflow, the current one first, and where it comes from. */
export function useVersions(workflowId: string, enabled = true) {
  return useQuery({ queryKey: ["workflow-versions", workflowId], queryFn: ({ signal }) => loadVersions(workflowId, signal), refetchOnMount: "always", enabled });
}

export function loadVersions(workflowId: string, signal?: AbortSignal): Promise<Versions> {
  return body(api.GET("/v1/workflows/{workflowId}/versions", { params: { path: { workflowId } }, ...(signal ? { signal } : {}) }));
}

/** A definition; undefined loads the current version. */
export function useDefinition(workflowId: string, version: string | undefined, enabled = true) {
  return useQuery({
    queryKey: ["workflow", workflowId, version ?? ""],
    queryFn: ({ signal }) => bodyAs<Definition>(api.GET("/v1/workflows/{workflowId}", { params: { path: { workflowId }, query: version === undefined ? {} : { version } }, signal })),
    refetchOnMount: "always",
    enabled,
  });
}

/** Formats a definition for an editor. */
export const written = (definition: unknown): string => stringifyJson(definition, 2);
