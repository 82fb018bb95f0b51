// @vitest-environment jsdom
import { afterEach, expect, test, vi } from "vitest";
import type { Item } from "../../inbox/host";
import { questionOf } from "../../inbox/question";
import { answerAll, begin, bulkable, offers, summary, type Outcome } from "./bulk";

const item = (data: object, kind = "approval", answerable = true): Item => ({
  runId: "run",
  workflowId: "flow",
  answerable,
  question: questionOf({ kind, nodeId: "gate", interruptId: "int", payload: { data: { title: "T", actions: ["accept"], ...data } } }),
});

test("only approvals whose workflow allows it, and that this key may answer, are answered together", () => {
  expect(bulkable(item({ bulkAnswers: true }))).toBe(true);
  expect(bulkable(item({}))).toBe(false);
  expect(bulkable(item({ bulkAnswers: "yes" }))).toBe(false);
  expect(bulkable(item({ bulkAnswers: true }, "custom"))).toBe(false);
  expect(bulkable(item({ bulkAnswers: true }, "approval", false))).toBe(false);
  expect([offers(item({}), "accept"), offers(item({}), "reject")]).toEqual([true, false]);
});

test("outcomes are counted in words, and each answer has its own key", () => {
  const all: Outcome[] = begin([item({}), item({}), item({})]);
  expect(new Set(all.map((o) => o.key)).size).toBe(3);
  const states = ["answered", "closed", "failed"] as const;
  expect(summary(all.map((o, i) => ({ ...o, state: states[i] ?? "waiting" })))).toBe("1 answered, 1 already closed or asked again, 1 failed");
  expect(summary(all)).toBe("0 answered, 3 left");
});

afterEach(() => vi.unstubAllGlobals());

const reply = (status: number, body: object): Response => new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });

test("each answer names the question that was shown, and one that was asked again is not answered", async () => {
  const sent: unknown[] = [];
  const replies = [reply(200, { interrupt: { outcome: "resolved" } }), reply(409, { error: "interrupt_already_resolved", message: "asked again" }), reply(403, { error: "forbidden", message: "no" })];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push([new URL(request.url).pathname, request.headers.get("Waybill-Interrupt-Id"), await request.json()]);
    return replies[sent.length - 1];
  });
  let latest: Outcome[] = [];
  await answerAll(begin([item({}), item({}), item({})]), "accept", "fine", (all) => (latest = all), () => false);
  const one = ["/v1/runs/run/interrupts/gate", "int", { resumeValue: { action: "accept", feedback: "fine" } }];
  expect(sent).toEqual([one, one, one]);
  expect(summary(latest)).toBe("1 answered, 1 already closed or asked again, 1 failed");
});
