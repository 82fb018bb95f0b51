import { expect, it } from "vitest";
import { rangeOf, readView, sortedBy, viewURL, withDays, withSince, type View } from "./query";

it.each<[string, View]>([
  ["", { filter: "", sort: "created", order: "desc" }],
  ["?filter=tag%3Aa%20b&sort=cost", { filter: "tag:a b", sort: "cost", order: "desc" }],
  ["?sort=waitingSince&order=asc", { filter: "", sort: "waitingSince", order: "asc" }],
  ["?sort=bogus&order=up", { filter: "", sort: "created", order: "desc" }],
])("%s is read, and written as it was", (search, view) => {
  expect(readView(search)).toEqual(view);
  expect(readView(viewURL(view).slice(1))).toEqual(view);
});

it("a click on a heading sorts, and another one turns the order", () => {
  const plain = readView("");
  const byCost = sortedBy(plain, "cost");
  expect(byCost).toMatchObject({ sort: "cost", order: "desc" });
  expect(sortedBy(byCost, "cost").order).toBe("asc");
  expect(sortedBy(plain, "waitingSince").order).toBe("asc");
});

it("days are whole local days, and kept with the other terms", () => {
  const filter = withDays("status:failed", { from: "2026-11-20", to: "2026-11-20" });
  expect(rangeOf(filter)).toEqual({ from: "2026-11-20", to: "2026-11-20" });
  expect(filter).toContain("status:failed");
  expect(withSince(filter, "24h")).toBe("status:failed since:24h");
  expect(withDays(filter, { from: "", to: "" })).toBe("status:failed");
});

it.each([
  ["", { since: "" }],
  ["since:7d", { since: "7d" }],
  ["since:2h", undefined],
  ["since:1h until:2026-11-20", undefined],
])("the range of %s", (filter, want) => expect(rangeOf(filter)).toEqual(want));
