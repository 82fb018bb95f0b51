import { expect, test } from "vitest";
import { definitionChanges } from "./compare";

const node = (id: string, more: object = {}) => ({ id, typeId: "core.noop", ...more });

test("a node that moved has not changed, one that was added has", () => {
  const a = { nodes: [node("a"), node("b", { name: "B" })] };
  const b = { nodes: [node("b", { name: "Bee" }), node("new"), node("a")] };
  expect(definitionChanges(a, b).map((c) => c.pointer)).toEqual(["/nodes/b/name", "/nodes/new"]);
});

test("lists whose entries have no ids, or the same, are compared by place", () => {
  const list = [node("a"), node("a", { name: "x" })];
  expect(definitionChanges({ nodes: list }, { nodes: [list[0] as object, node("a", { name: "y" })] as never }).map((c) => c.pointer)).toEqual(["/nodes/1/name"]);
});
