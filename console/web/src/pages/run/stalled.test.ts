import { expect, test } from "vitest";
import type { RunSnapshot, Standing } from "../../api/model";
import { stalledSince } from "./stalled";

const at = (seconds: number): string => new Date(seconds * 1000).toISOString();
const run = (waybill: Standing): RunSnapshot => ({ runId: "r", workflowId: "w", status: "running", waybill });

test.each<[string, Standing, number | undefined, number, number | undefined]>([
  ["a host that does not say", { lastEventAt: at(0) }, undefined, 999, undefined],
  ["not yet", { lastEventAt: at(0), stallsAt: at(60) }, 0, 59, undefined],
  ["for too long", { lastEventAt: at(0), stallsAt: at(60) }, 0, 61, 0],
  ["heard of since the snapshot", { lastEventAt: at(0), stallsAt: at(60) }, 30, 61, undefined],
  ["and silent again", { lastEventAt: at(0), stallsAt: at(60) }, 30, 91, 30],
  ["a timer that should have fired", { lastEventAt: at(0), stallsAt: at(360) }, 0, 361, 0],
])("C3d a run is stalled by what its host says: %s", (_, more, last, now, since) => {
  expect(stalledSince(run(more), last === undefined ? undefined : at(last), 60_000, now * 1000)).toBe(since === undefined ? undefined : since * 1000);
});
