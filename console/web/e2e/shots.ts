import { expect, type Page } from "@playwright/test";
import type { Host } from "./host";

/** A page of the console: its address, and how to wait until it shows what it is about. */
export type Shot = { name: string; path: string; ready: (page: Page) => Promise<unknown>; width?: number };

const heading = (page: Page): Promise<unknown> => page.getByRole("heading", { level: 1 }).waitFor();
const part = (selector: string) => (page: Page) => page.locator(selector).first().waitFor();

/** Every page, with the runs of the demo and some more. */
export async function shots(host: Host): Promise<Shot[]> {
  const demo = async (workflow: string, statuses: string[]): Promise<string> => {
    let runId = "";
    await expect(async () => {
      const { runs } = await host.json<{ runs: { runId: string; status: string }[] }>("GET", `/v1/runs?workflowId=${workflow}`);
      expect(statuses).toContain(runs[0]?.status);
      runId = runs[0]?.runId ?? "";
    }).toPass();
    return runId;
  };
  const recovered = await demo("demo-recovered", ["completed"]);
  const refused = await demo("demo-refused", ["failed"]);
  const asking = await demo("demo-approval", ["waiting-approval", "waiting-external"]);
  const gate = await host.runUntil("gate", ["waiting-approval"]);
  const fork = await host.json<{ runId: string }>("POST", `/v1/runs/${recovered}:fork`, { mode: "branch", fromSeq: 1 });
  await host.until(fork.runId, ["completed"]);
  const form = await host.json<{ interrupt: { interruptToken: string; interruptId: string } }>("GET", `/v1/runs/${asking}`);
  const approval = await host.json<{ interrupt: { interruptId: string } }>("GET", `/v1/runs/${gate}`);
  return [
    { name: "runs", path: "", ready: part(".run-link") },
    { name: "runs-phone", path: "", ready: part(".run-link"), width: 320 },
    { name: "runs-words", path: "", ready: (page) => page.getByText("Filter syntax").click().then(() => page.getByRole("list", { name: "Values of kind" }).waitFor()) },
    { name: "runs-none", path: "?filter=tag%3Anobody", ready: part(".empty") },
    { name: "run-timeline", path: `runs/${recovered}`, ready: part("[role=grid]") },
    { name: "run-past", path: `runs/${recovered}?at=4`, ready: part(".scrubber .status") },
    { name: "run-table", path: `runs/${recovered}?view=table&e=4`, ready: part(".inspector, aside") },
    { name: "run-data", path: `runs/${recovered}?view=data`, ready: part(".data, .empty") },
    { name: "run-cost", path: `runs/${recovered}?view=cost`, ready: part("tfoot") },
    { name: "run-failed", path: `runs/${refused}`, ready: part(".failure") },
    { name: "run-asking", path: `runs/${asking}`, ready: part(".question") },
    { name: "run-phone", path: `runs/${asking}`, ready: part(".question"), width: 320 },
    { name: "ladder-recovered", path: `runs/${recovered}/envelopes`, ready: part("table.ladder") },
    { name: "ladder-refused", path: `runs/${refused}/envelopes`, ready: part("table.ladder") },
    { name: "ladder-phone", path: `runs/${refused}/envelopes`, ready: part("table.ladder"), width: 320 },
    { name: "report", path: `runs/${recovered}/report`, ready: part("table") },
    { name: "bundle", path: "bundle", ready: heading },
    { name: "try", path: "try", ready: (page) => page.getByRole("textbox", { name: "Answer" }).fill('Of course: {"type": "error", "payload": {"code": "late"}}').then(() => page.locator(".verdict").waitFor()) },
    { name: "diff", path: `runs/${recovered}/diff/${fork.runId}`, ready: heading },
    { name: "inbox-form", path: `inbox?i=${form.interrupt.interruptId}`, ready: part(".question") },
    { name: "inbox-approval", path: `inbox?i=${approval.interrupt.interruptId}`, ready: part(".question") },
    { name: "answer", path: `answer#${form.interrupt.interruptToken}`, ready: part(".question") },
    { name: "capabilities", path: "capabilities", ready: (page) => page.getByRole("heading", { name: "Envelope kinds" }).waitFor() },
    { name: "system", path: "system", ready: part("dl, table") },
    { name: "api", path: "api", ready: part(".opblock") },
    { name: "not-found", path: "nowhere", ready: heading },
  ];
}
