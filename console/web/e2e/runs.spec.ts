import { expect, needsAQuietMachine, test } from "./fixtures";

test("C2a the list is filtered by the host, and its address says how", async ({ signedIn: page, host }) => {
  await host.runUntil("fail", ["failed"]);
  await host.runUntil("steps", ["completed"]);
  await page.goto(host.console);
  await page.getByRole("searchbox").fill("status:failed");
  await page.keyboard.press("Enter");
  const rows = page.getByRole("table", { name: "Runs" }).getByRole("row");
  await expect(rows.filter({ hasText: "fail" }).first()).toBeVisible();
  await expect(rows.filter({ hasText: "Completed" })).toHaveCount(0);
  expect(new URL(page.url()).searchParams.get("filter")).toBe("status:failed");

  const asked: string[] = [];
  page.on("request", (request) => request.url().includes("/v1/") && asked.push(request.url()));
  await page.reload();
  await expect(rows.filter({ hasText: "fail" }).first()).toBeVisible();
  await expect(rows.filter({ hasText: "Completed" })).toHaveCount(0);
  await expect(page.getByRole("list", { name: "Conditions" })).toContainText("status: failed");
  expect(asked.length).toBeLessThanOrEqual(3);
});

test("C2b a run that starts elsewhere appears within a second, and is said", async ({ signedIn: page, host }) => {
  await page.goto(host.console);
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  const runId = await host.run("wait", { tags: ["just-started"] });
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible({ timeout: 1000 });
  await expect(page.getByRole("status")).toHaveText(/new run/);
  await host.json("POST", `/v1/runs/${runId}/cancel`, {});
  await expect(page.getByRole("row").filter({ has: page.locator(`a[href$="${runId}"]`) })).toContainText("Cancelled");
});

test("C2c the list and the command line find the same runs by the same words", async ({ signedIn: page, host }) => {
  for (let i = 0; i < 3; i++) await host.runUntil("fail", ["failed"], { tags: ["c2c"] });
  await host.runUntil("steps", ["completed"], { tags: ["c2c"] });
  const filter = "status:failed tag:c2c since:1h";
  await page.goto(`${host.console}?filter=${encodeURIComponent(filter)}`);
  const links = page.locator(".run-link");
  await expect(links).toHaveCount(3);
  const shown = await links.evaluateAll((all) => all.map((a) => new URL((a as HTMLAnchorElement).href).pathname.split("/").at(-1)));
  const found = host.command("run", "list", "--filter", filter, "-o", "json") as { runs: { runId: string }[] };
  expect(shown).toEqual(found.runs.map((run) => run.runId));
});

test("C2 a pasted id leads to its run, and its event", async ({ signedIn: page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  await page.goto(host.console);
  await page.getByRole("searchbox").fill(`ev_${runId}_2`);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 2 })).toContainText("#2");
  expect(new URL(page.url()).pathname).toBe(`${new URL(host.console).pathname}runs/${runId}`);
});

test("C2 a list without runs says how to start one, and a filter without runs is told apart", async ({ signedIn: page, host }) => {
  await page.goto(`${host.console}?filter=${encodeURIComponent("workflow:nobody-has-this")}`);
  await expect(page.getByText("No run fits")).toBeVisible();
});

test("C2a a hundred thousand runs do not slow the list down @slow", async ({ signedIn: page, host }) => {
  test.setTimeout(1_200_000);
  const want = Number(process.env.RUNS ?? 100_000);
  for (let made = 0; made < want; made += 200) await Promise.all(Array.from({ length: 200 }, (_, i) => host.run(i % 50 === 0 ? "fail" : "steps")));
  needsAQuietMachine();
  const started = Date.now();
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url().includes("/v1/runs?")),
    page.goto(`${host.console}?filter=${encodeURIComponent("status:failed")}`),
    page.getByRole("row").nth(10).waitFor(),
  ]);
  expect(Date.now() - started).toBeLessThan(1000);
  expect((await answer.body()).length).toBeLessThan(50_000);
});
