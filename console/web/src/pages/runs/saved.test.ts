// @vitest-environment jsdom
import { expect, test } from "vitest";
import { maxSaved, readSaved, withSaved } from "./saved";

test.each([null, "", "{", "{}", "3", '[{"name":1,"filter":"x"},null,["a"]]'])("what is stored and is no list of filters is none: %j", (stored) => {
  expect(readSaved(stored)).toEqual([]);
});

test("a filter is saved under one name, and a name stands for one filter", () => {
  const a = { name: "mine", filter: "tag:me" };
  expect(withSaved([a], { name: "own", filter: "tag:me" })).toEqual([{ name: "own", filter: "tag:me" }]);
  expect(withSaved([a], { name: "mine", filter: "tag:us" })).toEqual([{ name: "mine", filter: "tag:us" }]);
  const many = Array.from({ length: maxSaved }, (_, i) => ({ name: `n${i}`, filter: `tag:${i}` }));
  expect(withSaved(many, a)).toEqual([...many.slice(1), a]);
});
