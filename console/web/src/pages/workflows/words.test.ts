import { expect, test } from "vitest";
import { costWords, rateWords, readOnlyReason } from "./words";

test("only runs without a failure have a success of 100 %", () => {
  expect(rateWords({ completed: 0, failed: 0 })).toBe("–");
  expect(rateWords({ completed: 7, failed: 0 })).toBe("100 %");
  expect(rateWords({ completed: 1999, failed: 1 })).toBe("99.9 %");
  expect(rateWords({ completed: 2, failed: 1 })).toBe("67 %");
  expect(rateWords({ completed: 0, failed: 3 })).toBe("0 %");
});

test("a cost that is not known is not 0", () => {
  expect(costWords({ priced: 0, costUsd: 0 })).toBe("–");
  expect(costWords({ priced: 4, costUsd: 0 })).toBe("$0");
  expect(costWords({ priced: 4, costUsd: 0.01 })).toBe("$0.0025");
  expect(costWords({ priced: 2, costUsd: 5 })).toBe("$2.50");
  expect(costWords({ priced: 1, costUsd: 0.00002 })).toBe("< $0.0001");
});

test("a workflow of a file, or of all tenants, cannot be changed here", () => {
  expect(readOnlyReason("tenant", undefined)).toBeUndefined();
  expect(readOnlyReason("shared", "triage.json")).toContain("triage.json");
  expect(readOnlyReason("shared", undefined)).toContain("All tenants");
});
