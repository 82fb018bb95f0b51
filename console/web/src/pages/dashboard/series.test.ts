import { describe, expect, test } from "vitest";
import { compact, countGroups, dollars, groupsOf, share, stepsOf } from "./series";
import { readView, runsURL, spans, viewURL } from "./view";

const refusal = (reason: string, count: number, more: object = {}) => ({ provider: "p", model: "m", reason, count, ...more });
const point = (at: string, created: number, refusals: object[] = []) => ({ at, runs: { created }, usage: {}, refusals }) as never;

describe("steps", () => {
  test("cover the span, also where nothing happened", () => {
    const statistics = { since: "2026-03-01T10:00:00.000Z", until: "2026-03-01T13:00:00.000Z", stepSeconds: 3600, points: [point("2026-03-01T11:00:00.000Z", 4)] } as const;
    expect(stepsOf(statistics as never, (p) => [p?.runs.created ?? 0])).toEqual([
      { at: "2026-03-01T10:00:00.000Z", values: [0] },
      { at: "2026-03-01T11:00:00.000Z", values: [4] },
      { at: "2026-03-01T12:00:00.000Z", values: [0] },
    ]);
  });
});

describe("groups of refusals", () => {
  const many = ["a", "b", "c", "d", "e", "f"].map((reason, i) => refusal(reason, 10 - i));
  test("are the most frequent ones, and the others together", () => {
    expect(groupsOf(many as never, "reason")).toEqual(["a", "b", "c", "d", "others"]);
    expect(groupsOf(many.slice(0, 5) as never, "reason")).toEqual(["a", "b", "c", "d", "e"]);
    expect(countGroups(point("x", 0, many), ["a", "b", "c", "d", "others"], "reason")).toEqual([10, 9, 8, 7, 11]);
    expect(countGroups(undefined, ["a"], "reason")).toEqual([0]);
  });
  test("name what is missing", () => {
    expect(groupsOf([refusal("parse-error", 1)] as never, "gate")).toEqual(["no document"]);
    expect(groupsOf([refusal("parse-error", 1)] as never, "kind")).toEqual(["not known"]);
    expect(groupsOf([refusal("parse-error", 1)] as never, "model")).toEqual(["p·m"]);
    expect(groupsOf([refusal("parse-error", 1)] as never, "reason")).toEqual(["no JSON document"]);
  });
});

test("shares are 0 % and 100 % only if they are", () => {
  expect([share(0, 10), share(10, 10), share(1, 1e6), share(999_999, 1e6), share(1, 3), share(0, 0)]).toEqual(["0 %", "100 %", "< 0.1 %", "> 99.9 %", "33 %", "–"]);
});

test("amounts keep their first digits", () => {
  expect([dollars(0), dollars(0.00001), dollars(0.0123), dollars(1234.5)]).toEqual(["$0", "< $0.0001", "$0.012", "$1,234.50"]);
  expect([compact(9999), compact(12_345), compact(4_200_000)]).toEqual(["9,999", "12.3K", "4.2M"]);
});

test("the state of the page is its URL", () => {
  for (const url of ["/dashboard", "/dashboard?view=quality&span=90d", "/dashboard?span=1h&workflow=a%20b"]) expect(viewURL(readView(url.split("?")[1] ?? ""))).toBe(url);
  expect(readView("span=nonsense").span).toBe(spans[2]);
  expect(runsURL(readView("workflow=a%20b"), "code", "run_timeout")).toBe(`/?filter=${encodeURIComponent('code:run_timeout workflow:"a b" since:24h')}`);
});
