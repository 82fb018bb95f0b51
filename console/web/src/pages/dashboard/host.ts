// Statistics of runs, model calls and answers, as the API adds them up.
import { useQuery } from "@tanstack/react-query";
import { api, body } from "../../api/client";
import type { components } from "../../api/schema";
import type { View } from "./view";

export type Statistics = components["schemas"]["GetStatisticsResult"];
export type Point = components["schemas"]["StatisticsPoint"];
export type Usage = components["schemas"]["UsageTotals"];
export type Runs = components["schemas"]["RunTotals"];
export type Refusal = components["schemas"]["AnswerRefusal"];

const refreshMs = 30_000;

/** The statistics of a view. They are read again while the page is open. */
export function useStatistics({ span, workflow }: View) {
  return useQuery({
    queryKey: ["statistics", span.id, workflow],
    queryFn: ({ signal }) => {
      const since = new Date(Date.now() - span.ms).toISOString();
      return body(api.GET("/v1/statistics", { params: { query: { since, ...(workflow ? { workflowId: workflow } : {}) } }, signal }));
    },
    staleTime: 0,
    refetchInterval: refreshMs,
  });
}

/** The totals of every tenant in a span, for operators. */
export function useTenants({ span }: View, on: boolean) {
  return useQuery({
    queryKey: ["statistics", "tenants", span.id],
    queryFn: ({ signal }) => body(api.GET("/v1/statistics/tenants", { params: { query: { since: new Date(Date.now() - span.ms).toISOString() } }, signal })),
    enabled: on,
    staleTime: 0,
    refetchInterval: refreshMs,
  });
}
