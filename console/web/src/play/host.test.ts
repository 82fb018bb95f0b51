// @vitest-environment jsdom
import { expect, test } from "vitest";
import { tagOf } from "./host";

test("each node has a tag of its own, however long its id is", () => {
  expect(tagOf("run_1", "draft")).toBe("playground:run_1/draft");
  const fits = "x".repeat(256 - "playground:run_1/".length);
  expect(tagOf("run_1", fits)).toBe(`playground:run_1/${fits}`);
  const long = "𝒙".repeat(300);
  const tags = [fits, `${fits}a`, `${fits}b`, `${long}a`, `${long}b`].map((id) => tagOf("run_1", id));
  expect(new Set(tags).size).toBe(5);
  expect(tags.map((t) => [...t].length)).toEqual([256, 256, 256, 256, 256]);
  expect(tags[3]).toMatch(/^playground:run_1\/𝒙+#[0-9a-f]{16}$/u);
  expect(tagOf("run_1", `${long}a`)).toBe(tags[3]);
});
