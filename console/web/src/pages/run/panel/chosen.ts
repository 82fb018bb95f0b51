// Which node the panel shows.
import type { RunEvent } from "../../../api/model";
import type { Execution, RunView } from "../../../ladder/model";
import type { Bar, Lane } from "../timeline";

export type Chosen = { lane: Lane; bar: Bar | undefined };

const nodeOf = (event: RunEvent): string | undefined => event.nodeId ?? (typeof event.payload.nodeId === "string" ? event.payload.nodeId : undefined);

/** Returns the node of an event, with the bar that the event belongs to. Without an event, the node that matters most. */
export function chosenIn(view: RunView, event: RunEvent | undefined): Chosen | undefined {
  const { lanes } = view.timeline;
  if (event) {
    const lane = lanes.find((l) => l.nodeId === nodeOf(event));
    return lane && { lane, bar: lane.bars.findLast((b) => b.sequence <= event.sequence) ?? lane.bars[0] };
  }
  const asked = view.answers.at(-1)?.nodeId;
  const lane =
    lanes.findLast((l) => l.status === "failed") ??
    lanes.findLast((l) => l.status === "suspended") ??
    lanes.findLast((l) => l.status === "running") ??
    lanes.find((l) => l.nodeId === asked) ??
    lanes.at(-1);
  return lane && { lane, bar: lane.bars.at(-1) };
}

/** Reports whether an event starts a bar, and so stands for the node rather than for itself. */
export const startsBar = (view: RunView, seq: number): boolean => view.timeline.lanes.some((l) => l.bars.some((b) => b.sequence === seq));

/** Returns the execution that a bar belongs to. */
export function executionOf(view: RunView, { lane, bar }: Chosen): Execution | undefined {
  const own = view.answers.filter((x) => x.nodeId === lane.nodeId);
  return own.findLast((x) => bar !== undefined && x.from <= bar.sequence) ?? own[0];
}
