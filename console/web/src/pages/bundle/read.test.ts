import { expect, test, vi } from "vitest";
import { gzipSync } from "node:zlib";
import { createHash } from "node:crypto";
import { checkSeal, readRecorded, textOf } from "./read";

const event = (sequence: number, type: string, payload: object = {}): object => ({ eventId: `ev_run_1_${sequence}`, runId: "run_1", sequence, type, payload, timestamp: `2026-11-22T10:00:0${sequence}.000Z` });
const run = { runId: "run_1", workflowId: "w", status: "completed" };

test("a bundle is its run and its events", () => {
  const read = readRecorded(JSON.stringify({ run, events: [event(0, "run.started"), event(1, "run.completed")], generatedAt: "2026-11-22T11:00:00Z", redactionApplied: true, redactionMode: "omit" }));
  expect(read.snapshot).toMatchObject(run);
  expect(read.events.map((e) => e.type)).toEqual(["run.started", "run.completed"]);
  expect(read.notes.join(" ")).toBe("Exported at 2026-11-22T11:00:00Z. Its content was redacted (mode omit).");
});

test("a bundle that was cut says where, and how it ended", () => {
  const read = readRecorded(JSON.stringify({ run, events: [event(0, "run.started"), event(7, "run.completed")], truncated: true }));
  expect(read.events).toHaveLength(1);
  expect(read.notes[0]).toBe("The log is cut after #0; it ended with #7, run.completed.");
});

test("lines of events are folded into a run", () => {
  const lines = [event(0, "run.started", { workflowId: "w" }), event(1, "run.failed", { error: { code: "boom", message: "no" } })].map((e) => JSON.stringify(e)).join("\n");
  expect(readRecorded(`${lines}\n`).snapshot).toMatchObject({ runId: "run_1", workflowId: "w", status: "failed", error: { code: "boom", message: "no" }, completedAt: "2026-11-22T10:00:01.000Z" });
});

test.each(["", "no", "{}", "[]", '{"run":{},"events":[]}', '{"run":3,"events":[]}', JSON.stringify(event(3, "run.started")), '{"a":1}\n{"b":2}'])("what is no export of a run is refused with a reason: %s", (text) => {
  expect(() => readRecorded(text)).toThrow(/\w/);
});

test.each([
  ["a view", { answers: [], timeline: {}, cost: {} }, true],
  ["no view", undefined, false],
  ["another host's member", { answers: 3 }, false],
])("of a bundle with %s", (_, view, found) => {
  expect(readRecorded(JSON.stringify({ run, events: [event(0, "run.started")], view })).view).toEqual(found ? view : null);
});

const sealed = (document: string): string => {
  const start = `${document.slice(0, -1)},"archive":{"format":1,"runId":"run_1"`;
  return `${start},"sha256":"${createHash("sha256").update(start).digest("hex")}"}}`;
};
const archive = sealed(JSON.stringify({ run, events: [event(0, "run.started", { text: "Größe <&>" })], redactionApplied: true, redactionMode: "omit" }));

test("a compressed archive is read as its bundle, and its hash is checked", async () => {
  vi.stubGlobal("isSecureContext", true);
  const packed = new Uint8Array(gzipSync(archive));
  const text = await textOf(new Blob([packed]));
  expect(text).toBe(archive);
  expect(await checkSeal(`${text}\n`)).toBe("It is an archive, and its hash matches.");
  expect(readRecorded(text).events).toHaveLength(1);
  expect(await textOf(new Blob([archive]))).toBe(archive);
  await expect(textOf(new Blob([packed.subarray(0, packed.length - 12)]))).rejects.toThrow(/truncated/);
  await expect(checkSeal(archive.replace("Größe", "Grösse"))).rejects.toThrow(/does not match/);
  await expect(checkSeal(JSON.stringify(JSON.parse(archive), null, 1))).rejects.toThrow(/written again/);
});

test("a page that is not secure says that it has not checked an archive", async () => {
  vi.stubGlobal("isSecureContext", false);
  expect(await checkSeal(archive)).toMatch(/cannot check/);
  expect(await checkSeal(JSON.stringify({ run, events: [] }))).toBeNull();
});
