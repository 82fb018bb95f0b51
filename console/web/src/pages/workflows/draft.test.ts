import { expect, test } from "vitest";
import { nextVersion, toBegin, toCopy, toEdit } from "./draft";

test("the next version counts its last number up, past those that exist", () => {
  expect(nextVersion("1.0", ["1.0"])).toBe("1.1");
  expect(nextVersion("1.0.9", ["1.0.9", "1.0.10"])).toBe("1.0.11");
  expect(nextVersion("2026-03-beta", [])).toBe("2026-4-beta");
  expect(nextVersion("draft", ["draft", "draft-1"])).toBe("draft-2");
  expect(nextVersion("9007199254740993", [])).toBe("9007199254740994");
});

test("a copy has an id of its own and no tenant", () => {
  expect(JSON.parse(toCopy({ id: "flow", name: "", version: "3", tenantId: "acme", nodes: [] }))).toEqual({ id: "flow-copy", name: "flow (copy)", version: "1.0.0", nodes: [] });
  expect((JSON.parse(toCopy({ id: "a".repeat(128) })) as { id: string }).id).toHaveLength(128);
});

test("what is edited is the definition with a new version", () => {
  expect(JSON.parse(toEdit({ id: "flow", version: "1.0" }, ["1.0"]))).toEqual({ id: "flow", version: "1.1" });
  expect(JSON.parse(toBegin("x"))).toMatchObject({ $schema: "x", nodes: [{ typeId: "core.ai.callPrompt" }] });
});
