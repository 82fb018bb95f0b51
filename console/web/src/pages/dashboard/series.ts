import type { Point, Refusal, Statistics } from "./host";

/** A step of a chart: its start, and a value for each series. */
export type Step = { at: string; values: number[] };

/** Returns a step for each one of the span, also for those without counts. */
export function stepsOf(statistics: Pick<Statistics, "since" | "until" | "stepSeconds" | "points">, values: (point: Point | undefined) => number[]): Step[] {
  const byStart = new Map((statistics.points ?? []).map((p) => [Date.parse(p.at), p]));
  const out: Step[] = [];
  const until = Date.parse(statistics.until);
  for (let at = Date.parse(statistics.since); at < until; at += statistics.stepSeconds * 1000) {
    out.push({ at: new Date(at).toISOString(), values: values(byStart.get(at)) });
  }
  return out;
}

/** What refusals are grouped by. */
export const groupings = ["reason", "gate", "kind", "model"] as const;
export type Grouping = (typeof groupings)[number];

/** The group of a refusal in words. */
export function groupOf(refusal: Refusal, by: Grouping): string {
  switch (by) {
    case "reason":
      return reasonWords(refusal.reason);
    case "gate":
      return refusal.gate ?? "no document";
    case "kind":
      return refusal.kind ?? "not known";
    case "model":
      return `${refusal.provider}·${refusal.model}`;
  }
}

const reasons: Record<string, string> = {
  "schema-violation": "schema violation",
  "type-drift": "wrong kind or version",
  "type-mismatch": "wrong type",
  "parse-error": "no JSON document",
  truncation: "truncated",
  refusal: "the model declined",
  envelope_contract_violation: "kind not accepted",
  cap_breached: "limit exceeded",
};

export const reasonWords = (reason: string): string => reasons[reason] ?? reason.replaceAll(/[_-]/g, " ");

/** The most groups that a chart shows apart. */
const maxGroups = 5;

/** Returns the most frequent groups of refusals, then "others" if there are more. */
export function groupsOf(refusals: readonly Refusal[], by: Grouping): string[] {
  const sums = new Map<string, number>();
  for (const r of refusals) sums.set(groupOf(r, by), (sums.get(groupOf(r, by)) ?? 0) + Number(r.count));
  const all = [...sums].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([name]) => name);
  return all.length > maxGroups ? [...all.slice(0, maxGroups - 1), "others"] : all;
}

/** Counts the refusals of a point by group. */
export function countGroups(point: Point | undefined, groups: readonly string[], by: Grouping): number[] {
  const out = groups.map(() => 0);
  for (const r of point?.refusals ?? []) {
    const own = groups.indexOf(groupOf(r, by));
    const at = own < 0 ? groups.length - 1 : own;
    out[at] = (out[at] ?? 0) + Number(r.count);
  }
  return out;
}

/** Formats a share. Only a whole is 100 %, and only nothing is 0 %. */
export function share(part: number, whole: number): string {
  if (whole === 0) return "–";
  const percent = (part / whole) * 100;
  if (part > 0 && percent < 0.1) return "< 0.1 %";
  if (part < whole && percent > 99.9) return "> 99.9 %";
  return `${percent < 10 || percent > 99 ? Number(percent.toFixed(1)) : Math.round(percent)} %`;
}

/** Formats an amount of dollars with two significant digits. */
export function dollars(n: number): string {
  if (n === 0) return "$0";
  if (n < 0.0001) return "< $0.0001";
  return n < 1 ? `$${Number(n.toPrecision(2))}` : `$${n.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

const compactFormat = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Formats a large count in short. */
export const compact = (n: number): string => (n < 10_000 ? n.toLocaleString("en") : compactFormat.format(n));
