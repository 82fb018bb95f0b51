// What a lane of the timeline shows, and keys of it that stay while a run goes on.
import type { Bar, Lane, Mark, Row } from "./timeline";

/** Focusable items of a lane: bars and marks, in time order. */
export type Item = { kind: "bar"; bar: Bar; at: number; seq: number } | { kind: "mark"; mark: Mark; at: number; seq: number };

export function itemsOf(lane: Pick<Lane, "bars" | "marks">): Item[] {
  const bars: Item[] = lane.bars.map((bar) => ({ kind: "bar", bar, at: bar.from, seq: bar.sequence }));
  const marks: Item[] = lane.marks.map((mark) => ({ kind: "mark", mark, at: mark.at, seq: mark.sequence }));
  return [...bars, ...marks].sort((a, b) => a.at - b.at || a.seq - b.seq);
}

/** The key of a row: its run and its node. The row of the whole run has no type, and is that of no node. */
export const rowKey = ({ runId, whole, nodeId, typeId }: Row): string => JSON.stringify([runId ?? "", whole ?? (typeId === "" ? "run" : ""), nodeId]);

/** The key of an item in its row. */
export const itemKey = ({ kind, seq }: Item): string => `${kind}${seq}`;

/** Returns the item with these keys and its row, if they are still there. */
export function itemAt(rows: readonly Row[], at: { row: string; item: string }): { row: Row; item: Item } | undefined {
  const row = rows.find((r) => rowKey(r) === at.row);
  const item = row && itemsOf(row).find((i) => itemKey(i) === at.item);
  return row && item && { row, item };
}
