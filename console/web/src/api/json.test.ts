import { describe, expect, it } from "vitest";
import { ExactNumber, integerOf, parseJson, stringifyJson } from "./json";

describe("numbers stay what was written", () => {
  it.each(["9007199254740993", "1.10", "1e400", "-0", "0.1000000000000000055", "12345678901234567890"])("%s", (text) => {
    const value = parseJson(`{"n":${text}}`) as { n: ExactNumber };
    expect(String(value.n)).toBe(text);
  });

  it("plain numbers are numbers", () => {
    expect(parseJson('{"a":1,"b":-2.5,"c":9007199254740992}')).toEqual({ a: 1, b: -2.5, c: 9007199254740992 });
  });

  it("a string of digits stays a string", () => {
    expect(parseJson('{"id":"12345678901234567890","n":1.0}')).toEqual({ id: "12345678901234567890", n: new ExactNumber("1.0") });
  });
});

it("a document without delicate numbers is written as it was read", () => {
  const text = '{"a":[1,true,null,"x"],"b":{"c":-1.5}}';
  expect(stringifyJson(parseJson(text))).toBe(text);
});

it.each([
  ['{"n":9007199254740993,"s":"a \\"1.10\\" b"}'],
  ['["\ue000x","\ue000\ue000y",1.0]'],
  ["-0"],
  ["[1E5,0.10]"],
])("%s is written as it was read", (text) => {
  expect(stringifyJson(parseJson(text))).toBe(text);
});

it("refuses what is no JSON", () => {
  expect(() => parseJson("[1.0.0]")).toThrow(SyntaxError);
});

it.each([
  ["12", 12n],
  ["-0", 0n],
  ["9007199254740993", 9007199254740993n],
  ["2.0", 2n],
  ["1e3", 1000n],
  ["1.5", undefined],
  ["1e400", undefined],
  ['"12"', undefined],
  ["null", undefined],
  ["[]", undefined],
])("the whole number of %s is %s", (text, want) => {
  expect(integerOf(parseJson(text))).toBe(want);
});
