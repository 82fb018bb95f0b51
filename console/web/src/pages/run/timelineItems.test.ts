import { expect, it } from "vitest";
import type { Bar, Row } from "./timeline";
import { itemAt, itemKey, itemsOf, rowKey, type Item } from "./timelineItems";

const bar = (sequence: number, from: number): Bar => ({ attempt: 0, sequence, from, status: "completed", parts: [] });
const row = (nodeId: string, bars: Bar[], more: Partial<Row> = {}): Row => ({ nodeId, typeId: "core.noop", status: "completed", bars, marks: [], depth: 0, ...more });

it("a card stays with its bar while rows and bars are added before it", () => {
  const lane = row("b", [bar(7, 70)]);
  const keys = { row: rowKey(lane), item: itemKey(itemsOf(lane)[0] as Item) };
  const later = [row("a", [bar(2, 20)]), row("b", [bar(3, 30), bar(7, 70)]), row("b", [bar(7, 70)], { runId: "r2" })];
  const found = itemAt(later, keys);
  expect(found?.row).toBe(later[1]);
  expect(found?.item).toMatchObject({ kind: "bar", seq: 7 });
});

it("a card closes with its row, and shows no other one", () => {
  const lane = row("c", [bar(4, 40)], { runId: "r2" });
  const keys = { row: rowKey(lane), item: "bar4" };
  expect(itemAt([row("c", [bar(4, 40)])], keys)).toBeUndefined();
  expect(itemAt([row("c", [bar(5, 40)], { runId: "r2" })], keys)).toBeUndefined();
});

it("the row of the run is not that of a node with its name", () => {
  expect(rowKey(row("run", [], { typeId: "" }))).not.toBe(rowKey(row("run", [])));
});
