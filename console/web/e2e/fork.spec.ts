import { expect, expectAccessible, test } from "./fixtures";
import { asking, kind, program, triage } from "./model";

test("C8a a fork names its effects, edits only a branch, and begins with the same events", async ({ signedIn: page, host }) => {
  await asking(host, "c8a", { envelopeType: kind });
  await program(host, "c8a", JSON.stringify(triage()));
  const runId = await host.runUntil("c8a", ["completed"]);
  const source = await host.events(runId);
  await page.goto(`${host.console}runs/${runId}?e=2`);
  await page.keyboard.press("f");
  const dialog = page.getByRole("dialog", { name: "Fork this run" });
  await expect(dialog.getByRole("radio", { name: "Replay" })).toHaveAccessibleDescription(/no model is asked, nothing outside is reached, no webhook is sent\. Taken from the record: 1 model call/);
  await expect(dialog.getByRole("radio", { name: "Branch" })).toHaveAccessibleDescription(/models are asked and paid for/);
  await expect(dialog.getByRole("region", { name: "Inherited events" })).toContainText("Inherited: 2 events");
  await expect(dialog.getByLabel("configurable, as JSON")).toHaveCount(0);
  await expect(dialog.getByRole("region", { name: "The request" })).toContainText(`-d '{"mode":"replay","fromSeq":2}' ${host.url}/v1/runs/${runId}:fork`);
  await expect(dialog.getByRole("region", { name: "The request" })).toContainText("$WAYBILL_TOKEN");
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Replay from #2" }).click();
  await expect(page).not.toHaveURL(new RegExp(runId));
  const replay = new URL(page.url()).pathname.split("/").at(-1) as string;
  await expect(page.locator("main")).toContainText(/#2/);
  await host.until(replay, ["completed"]);
  const again = await host.events(replay);
  expect(again.map((e) => [e.type, e.nodeId])).toEqual(source.map((e) => [e.type, e.nodeId]));

  await program(host, "c8a", JSON.stringify(triage({ priority: "low" })));
  await page.goto(`${host.console}runs/${runId}?e=2`);
  await page.keyboard.press("f");
  await dialog.getByRole("radio", { name: "Branch" }).check();
  await dialog.getByLabel("tags, divided by commas").fill("second try");
  await expect(dialog.getByRole("region", { name: "The request" })).toContainText('"runOptionsOverlay":{"tags":["second try"]}');
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Branch from #2" }).click();
  await expect(page).not.toHaveURL(new RegExp(runId));
  const branch = new URL(page.url()).pathname.split("/").at(-1) as string;
  await host.until(branch, ["completed"]);
  const snapshot = await host.json<{ tags: string[]; fork: object }>("GET", `/v1/runs/${branch}`);
  expect(snapshot).toMatchObject({ tags: ["second try"], fork: { sourceRunId: runId, mode: "branch", fromSeq: 2 } });
  const own = await host.events(branch);
  expect(own.slice(0, 2).map((e) => [e.type, e.nodeId])).toEqual(source.slice(0, 2).map((e) => [e.type, e.nodeId]));
});

test("C8b the comparison begins at the first divergence and says what the API says", async ({ signedIn: page, host }) => {
  await asking(host, "c8b", { envelopeType: kind });
  await program(host, "c8b", JSON.stringify(triage()));
  const a = await host.runUntil("c8b", ["completed"]);
  await program(host, "c8b", JSON.stringify(triage({ priority: "low" })));
  const b = await host.runUntil("c8b", ["completed"]);
  const report = await host.json<{ divergedAtSeq: number; eventDiffs: { seq: number; op: string }[] }>("GET", `/v1/runs/${a}:diff?against=${b}`);
  await page.goto(`${host.console}runs/${a}/diff/${b}`);
  await expect(page.getByText(`First divergence at #${report.divergedAtSeq}.`)).toBeVisible();
  await expect(page.locator(".diff-events summary").first()).toBeFocused();
  const rows = await page.locator(".diff-events summary").evaluateAll((all) => all.map((s) => [s.querySelector(".diff-seq")?.textContent, s.querySelector(".diff-op")?.textContent?.replace(/^\W+/, "")]));
  expect(rows).toEqual(report.eventDiffs.map((d) => [`#${d.seq}`, d.op]));
  await expectAccessible(page);
  await page.goto(`${host.console}runs/${a}/diff/${a}`);
  await expect(page.getByText("No differences.")).toBeVisible();
});
