import { expect, test } from "vitest";
import { alarms, withReading } from "./alarms";
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

const at = (second: number, waiting: number, taken: number, applied: number, behind: number) => ({
  now: new Date(second * 1000).toISOString(),
  queue: { waiting, taken, limited: 0 },
  readModel: { applied, behind, damagedRecords: 0, followers: 0, rebuilds: 0 },
});

test("a busy host is no alarm, one that makes no progress is", () => {
  const none = { waiting: false, behind: false };
  expect(alarms(undefined, at(5, 3, 0, 10, 4))).toEqual(none);
  expect(alarms(at(0, 3, 8, 10, 4), at(5, 3, 8, 900, 4))).toEqual(none);
  expect(alarms(at(0, 0, 0, 10, 0), at(5, 3, 0, 10, 4))).toEqual(none);
  expect(alarms(at(0, 3, 0, 10, 4), at(5, 3, 0, 10, 4))).toEqual({ waiting: true, behind: true });
  expect(alarms(at(0, 3, 0, 10, 4), at(5, 0, 0, 14, 0))).toEqual(none);
  expect(alarms(undefined, at(5, 1001, 8, 10, 1001))).toEqual({ waiting: true, behind: true });
});

test("readings soon after each other are not compared", () => {
  const [first, second, third] = [at(0, 3, 0, 10, 4), at(1, 3, 0, 10, 4), at(5, 3, 0, 10, 4)];
  const one = withReading({}, first);
  expect(one).toEqual({ before: undefined, last: first });
  expect(withReading(one, second)).toBe(one);
  expect(withReading(one, third)).toEqual({ before: first, last: third });
  expect(withReading(one, first)).toBe(one);
});
