import { expect, it } from "vitest";
import { parseJson } from "../../api/json";
import { count, money } from "./usage";

it.each([
  ["0", "0"],
  ["1200", "1,200"],
  ["27670116110564327421", "27,670,116,110,564,327,421"],
])("the count %s is written %s", (n, want) => {
  expect(count(parseJson(n))).toBe(want);
});

it("an unknown count is not zero", () => expect(count(undefined)).toBe("–"));

it.each([
  [undefined, "–"],
  [0, "$0.00"],
  [1.5, "$1.50"],
  [0.000123, "$0.00012"],
  [parseJson("0.1234567890123456") as number, "$0.12"],
])("%s is written %s", (amount, want) => {
  expect(money(amount, "USD")).toBe(want);
});
