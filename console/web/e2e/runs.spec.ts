import { expect, least, test, timePaint } from "./fixtures";
import { asking, envelope, program } from "./model";
import { expectAccessibleEverywhere } from "./themes";

test("C2a the list is filtered by the host, and the URL contains the filter", async ({ signedIn: page, host }) => {
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

test("C2b a run that starts elsewhere appears within a second, and is said", { tag: "@timed" }, async ({ signedIn: page, host }) => {
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

test("C2 an empty list explains how to start a run, and a filter without runs looks different", async ({ signedIn: page, host }) => {
  await page.goto(`${host.console}?filter=${encodeURIComponent("workflow:nobody-has-this")}`);
  await expect(page.getByText("No runs match")).toBeVisible();
});

test("C2 the list links to every page that belongs to no run", async ({ signedIn: page, host }) => {
  for (const [link, title] of [["Compare runs…", "Compare runs"], ["Try an answer…", "Try an answer"], ["Open a file…", "Open a file"]] as const) {
    await page.goto(host.console);
    await page.getByRole("link", { name: link }).click();
    await expect(page.getByRole("heading", { level: 1, name: title })).toBeVisible();
  }
});

test("C2 the filter syntax is listed, and kinds and providers find their runs", async ({ signedIn: page, host }) => {
  await asking(host, "asks", { envelopeType: "clarification.request" });
  await program(host, "asks", envelope("clarification.request", { questions: [{ id: "q", question: "Which colour?" }] }));
  const runId = await host.runUntil("asks", ["waiting-input"]);
  await host.runUntil("steps", ["completed"]);
  await page.goto(host.console);
  await page.getByText("Filter syntax").click();
  await expectAccessibleEverywhere(page);
  await page.getByRole("list", { name: "Values of kind" }).getByRole("link", { name: "clarification.request" }).click();
  expect(new URL(page.url()).searchParams.get("filter")).toBe("kind:clarification.request");
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible();
  await expect(page.getByRole("row").filter({ hasText: "steps" })).toHaveCount(0);

  await page.getByText("Filter syntax").click();
  await page.getByRole("button", { name: "provider:" }).click();
  await expect(page.getByRole("searchbox")).toBeFocused();
  await page.keyboard.type("mock");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("list", { name: "Conditions" })).toContainText("provider: mock");
  await expect(page.locator(`a[href$="${runId}"]`)).toBeVisible();
  await page.goto(`${host.console}?filter=${encodeURIComponent("provider:nobody")}`);
  await expect(page.getByText("No runs match")).toBeVisible();
});

test("C2 a filter is saved under a name, kept in the browser, and forgotten", async ({ signedIn: page, host }) => {
  await page.goto(`${host.console}?filter=${encodeURIComponent("status:failed")}`);
  await page.getByRole("button", { name: "Save this filter…" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("What broke");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const saved = page.getByRole("list", { name: "Saved filters" });
  await expect(saved.getByRole("link", { name: "What broke" })).toHaveAttribute("aria-current", "true");
  await page.goto(host.console);
  await saved.getByRole("link", { name: "What broke" }).click();
  expect(new URL(page.url()).searchParams.get("filter")).toBe("status:failed");
  await expectAccessibleEverywhere(page);
  await page.getByRole("button", { name: "Forget the filter What broke" }).click();
  await page.reload();
  await expect(page.getByRole("button", { name: "Save this filter…" })).toBeVisible();
  await expect(saved).toHaveCount(0);
});

test("C2 several runs are cancelled together, and each shows its result", async ({ signedIn: page, host }) => {
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push(await host.runUntil("gate", ["waiting-approval"], { tags: ["bulk"] }));
  await host.runUntil("steps", ["completed"], { tags: ["bulk"] });
  await page.goto(`${host.console}?filter=${encodeURIComponent("tag:bulk")}`);
  await page.getByRole("button", { name: "Select runs…" }).click();
  await expect(page.getByRole("checkbox")).toHaveCount(3);
  await page.getByRole("button", { name: "Select all 3 active" }).click();
  await page.getByRole("checkbox").first().uncheck();
  await expectAccessibleEverywhere(page);
  await page.getByRole("button", { name: "Cancel 2 runs…" }).click();
  const dialog = page.getByRole("dialog", { name: "Cancel 2 runs" });
  await expect(dialog.getByRole("list", { name: "Runs to cancel" }).getByRole("listitem")).toHaveCount(2);
  await dialog.getByLabel(/^Reason/).fill("not wanted");
  await expectAccessibleEverywhere(page);
  // One of them ends before the confirmation. The first of the list is the newest, and stays.
  const [left, ended] = [ids[2] as string, ids[1] as string];
  await host.json("POST", `/v1/runs/${ended}/interrupts/gate`, { resumeValue: { action: "accept" } });
  await host.until(ended, ["completed"]);
  await dialog.getByRole("button", { name: "Cancel 2 runs" }).click();
  await expect(dialog.getByText("1 run cancelled, 1 had ended before")).toBeVisible();
  await expect(dialog.getByRole("list", { name: "Runs that were not cancelled" })).toContainText("run_terminal");
  await dialog.getByRole("button", { name: "Close" }).last().click();
  expect((await host.events(ids[0] as string)).at(-1)).toMatchObject({ type: "run.cancelled", payload: { reason: "not wanted" } });
  expect((await host.json<{ status: string }>("GET", `/v1/runs/${left}`)).status).toBe("waiting-approval");
});

test("C2a a hundred thousand runs do not slow the list down", { tag: "@slow" }, async ({ signedIn: page, host }) => {
  test.setTimeout(3_000_000);
  const want = Number(process.env.RUNS ?? 100_000);
  for (let made = 0; made < want; made += 200) await Promise.all(Array.from({ length: 200 }, (_, i) => host.run(i % 50 === 0 ? "fail" : "steps")));
  await expect(async () => expect((await host.json<{ runs: unknown[] }>("GET", "/v1/runs?status=pending&limit=1")).runs).toEqual([])).toPass({ timeout: 600_000 });

  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  const paint = await timePaint(page, ".run-link");
  for (const [query, kind] of [["", "steps"], [`?filter=${encodeURIComponent("status:failed")}`, "fail"]] as const) {
    const took = await least(1000, 10, async () => {
      await page.goto("about:blank"); // so that no answer is still on its way to the page of before
      requests.length = 0;
      const answer = page.waitForResponse((response) => response.url().includes("/v1/runs?")).then((response) => response.body());
      const ms = await paint(host.console + query);
      expect((await answer).length).toBeLessThan(50_000);
      return ms;
    });
    expect(took).toBeLessThan(1000);
    await expect(page.locator(".run-link")).toHaveCount(50);
    await expect(page.getByRole("row").nth(2)).toContainText(kind);
    expect(requests.filter((url) => url.includes("/v1/")).length).toBeLessThanOrEqual(3);
  }
});
