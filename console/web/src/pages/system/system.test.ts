import { expect, test } from "vitest";
import { bytes } from "./bytes";
import { usesIn } from "./uses";

test("a size has its largest unit, and is not cut", () => {
  expect([0, 999, 1000, 1536, 123_456, 5_000_000_000].map(bytes)).toEqual(["0 B", "999 B", "1.0 kB", "1.5 kB", "123 kB", "5.0 GB"]);
});

const used = (key: string, lastAt: string, granted: { [scope: string]: number }, denied: { [scope: string]: number }) => ({ action: "key.used", target: `keys/${key}`, occurredAt: "later", details: { granted, denied, lastAt } });

test("the uses of a key are added up by scope, granted and denied", () => {
  const uses = usesIn([used("a", "2", { "runs:read": 3 }, {}), { action: "run.cancelled", target: "runs/x" }, used("b", "1", { "runs:read": 1 }, {}), used("a", "1", { "runs:read": 2 }, { "runs:cancel": 1 })]);
  expect(uses.map((u) => [u.key, u.at, Object.fromEntries(u.scopes)])).toEqual([
    ["a", "2", { "runs:read": { granted: 5, denied: 0 }, "runs:cancel": { granted: 0, denied: 1 } }],
    ["b", "1", { "runs:read": { granted: 1, denied: 0 } }],
  ]);
});
