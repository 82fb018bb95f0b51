import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api, body } from "../../api/client";
import { statuses } from "../../api/model";
import { lookOf } from "../../ui/Status";
import { parseFilter, withTerm } from "./filter";
import { viewURL, type View } from "./query";

// The tabs that are there without a run, too.
const always = new Set(["running", "waiting-approval", "waiting-input", "failed", "completed"]);

export type Counts = { total: number; truncated: boolean; of: (status: string) => number };

/** Counts the runs of each status that match the other terms of a filter. */
export function useCounts(filter: string, changes: number): Counts | undefined {
  const others = withTerm(filter, "status", []);
  const { data } = useQuery({
    queryKey: ["run-counts", others, changes],
    queryFn: async ({ signal }) => body(api.GET("/v1/runs:count", { params: { query: others ? { filter: others } : {} }, signal })),
    placeholderData: (before) => before,
  });
  return data && { total: data.total, truncated: data.truncated, of: (status) => data.counts.find((c) => c.status === status)?.count ?? 0 };
}

/** One tab for each status, with the number of its runs. */
export function StatusTabs({ view, counts }: { view: View; counts: Counts | undefined }): ReactNode {
  const current = parseFilter(view.filter).terms.find((t) => t.name === "status")?.value;
  const shown = statuses.filter((status) => always.has(status) || status === current || (counts?.of(status) ?? 0) > 0);
  const tab = (name: string, status: string | undefined, n: number | undefined): ReactNode => (
    <li key={name} data-none={n === 0 && status !== undefined && status !== current ? "" : undefined}>
      <Link href={viewURL({ ...view, filter: withTerm(view.filter, "status", status ? [status] : []) })} aria-current={status === current ? "true" : undefined}>
        {name}
        {n !== undefined && (
          <span className="tab-count">
            {n.toLocaleString("en")}
            {counts?.truncated && n > 0 && "+"}
          </span>
        )}
      </Link>
    </li>
  );
  return (
    <nav aria-label="Status" className="status-tabs">
      <ul>
        {tab("All", undefined, counts?.total)}
        {shown.map((status) => tab(lookOf(status).word, status, counts?.of(status)))}
      </ul>
    </nav>
  );
}
