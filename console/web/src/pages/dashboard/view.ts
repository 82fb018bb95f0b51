// The state of the page, which its URL holds.
import { formatFilter } from "../runs/filter";

const hour = 3_600_000;

/** The spans of time to choose from. The name is also the term of the list of runs. */
export const spans = [
  { id: "1h", name: "Last hour", ms: hour },
  { id: "6h", name: "Last 6 hours", ms: 6 * hour },
  { id: "24h", name: "Last 24 hours", ms: 24 * hour },
  { id: "7d", name: "Last 7 days", ms: 7 * 24 * hour },
  { id: "30d", name: "Last 30 days", ms: 30 * 24 * hour },
  { id: "90d", name: "Last 90 days", ms: 90 * 24 * hour },
] as const;

export type Span = (typeof spans)[number];

/** What the page shows: the state that its URL holds. */
export type View = { view: "overview" | "quality"; span: Span; workflow: string };

/** Reads the state from a query string. */
export function readView(search: string): View {
  const params = new URLSearchParams(search);
  return {
    view: params.get("view") === "quality" ? "quality" : "overview",
    span: spans.find((s) => s.id === params.get("span")) ?? spans[2],
    workflow: params.get("workflow") ?? "",
  };
}

/** Returns the path of a state. */
export function viewURL({ view, span, workflow }: View): string {
  const params = new URLSearchParams({
    ...(view === "quality" ? { view } : {}),
    ...(span.id !== "24h" ? { span: span.id } : {}),
    ...(workflow ? { workflow } : {}),
  });
  return params.size > 0 ? `/dashboard?${params.toString().replaceAll("+", "%20")}` : "/dashboard";
}

/** Returns the filter of the runs of a view, with one more term. */
export function runsFilter({ span, workflow }: View, name?: string, value = ""): string {
  return formatFilter([...(name ? [{ name, value }] : []), ...(workflow ? [{ name: "workflow", value: workflow }] : []), { name: "since", value: span.id }]);
}

/** Returns the path of the list of these runs. */
export const runsURL = (view: View, name: string, value: string): string => `/?filter=${encodeURIComponent(runsFilter(view, name, value))}`;
