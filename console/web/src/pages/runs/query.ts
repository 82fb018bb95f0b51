import type { paths } from "../../api/schema";
import { parseFilter, withTerm } from "./filter";

type Params = NonNullable<paths["/v1/runs"]["get"]["parameters"]["query"]>;
export type Sort = NonNullable<Params["sort"]>;
export type Order = NonNullable<Params["order"]>;

/** What the list shows: the state that its URL holds. */
export type View = {
  filter: string;
  sort: Sort;
  order: Order;
  /** The saved view that the list came from. */
  saved?: string | undefined;
};

/** The values to sort by, with the order that answers the usual question. */
export const sorts: readonly { sort: Sort; name: string; first: Order }[] = [
  { sort: "created", name: "Created", first: "desc" },
  { sort: "model", name: "Model", first: "asc" },
  { sort: "lastNode", name: "Last node", first: "asc" },
  { sort: "tokens", name: "Tokens", first: "desc" },
  { sort: "cost", name: "Cost", first: "desc" },
  { sort: "duration", name: "Took", first: "desc" },
  { sort: "waitingSince", name: "Waiting since", first: "asc" },
];

export const firstOrder = (sort: Sort): Order => sorts.find((s) => s.sort === sort)?.first ?? "desc";

/** Reads the state from a query string. Unknown values are those of a plain list. */
export function readView(search: string): View {
  const params = new URLSearchParams(search);
  const sort = sorts.find((s) => s.sort === params.get("sort"))?.sort ?? "created";
  const order = params.get("order");
  const saved = params.get("view");
  return { filter: params.get("filter") ?? "", sort, order: order === "asc" || order === "desc" ? order : "desc", ...(saved ? { saved } : {}) };
}

/** Returns the path of a state. */
export function viewURL({ filter, sort, order, saved }: View): string {
  const params = new URLSearchParams({
    ...(filter ? { filter } : {}),
    ...(sort !== "created" ? { sort } : {}),
    ...(order !== "desc" ? { order } : {}),
    ...(saved ? { view: saved } : {}),
  });
  return params.size > 0 ? `/?${params.toString().replaceAll("+", "%20")}` : "/";
}

/** The next state after a click on the heading of a column. */
export function sortedBy(view: View, sort: Sort): View {
  const first = firstOrder(sort);
  if (view.sort !== sort) return { ...view, sort, order: first };
  return { ...view, order: view.order === "asc" ? "desc" : "asc" };
}

export const isNewestFirst = ({ sort, order }: View): boolean => sort === "created" && order === "desc";

/** The presets of the date range. */
export const ranges: readonly { name: string; since: string }[] = [
  { name: "Any time", since: "" },
  { name: "Last hour", since: "1h" },
  { name: "Last 24 hours", since: "24h" },
  { name: "Last 7 days", since: "7d" },
  { name: "Last 30 days", since: "30d" },
];

/** A range of local days, both inclusive, as ISO days; empty if open. */
export type Days = { from: string; to: string };

const isoTime = /^\d{4}-\d\d-\d\dT/;

/** Returns the range of a filter: the since of a preset, days, or undefined for another one. */
export function rangeOf(filter: string): { since: string } | Days | undefined {
  const value = (name: string): string => parseFilter(filter).terms.find((t) => t.name === name)?.value ?? "";
  const [since, until] = [value("since"), value("until")];
  if (until === "" && ranges.some((r) => r.since === since)) return { since };
  if ((since === "" || isoTime.test(since)) && (until === "" || isoTime.test(until))) {
    return { from: since && localDay(new Date(since)), to: until && localDay(new Date(Date.parse(until) - 1)) };
  }
  return undefined;
}

/** Sets the range of a filter to local days. */
export function withDays(filter: string, { from, to }: Days): string {
  const next = withTerm(filter, "since", from ? [midnight(from, 0)] : []);
  return withTerm(next, "until", to ? [midnight(to, 1)] : []);
}

export const withSince = (filter: string, since: string): string => withTerm(withTerm(filter, "until", []), "since", since ? [since] : []);

function midnight(isoDay: string, add: number): string {
  const [y, m, d] = isoDay.split("-").map(Number);
  return new Date(y ?? 1970, (m ?? 1) - 1, (d ?? 1) + add).toISOString();
}

const two = (n: number): string => String(n).padStart(2, "0");

function localDay(at: Date): string {
  if (Number.isNaN(at.valueOf())) return "";
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}
