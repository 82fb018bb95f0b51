import type { Page } from "@playwright/test";
import { expect, signIn, test } from "./fixtures";
import { Host, key } from "./host";
import { expectAccessibleEverywhere, expectAccessibleInBothThemes } from "./themes";

// Each test has workflows of its own: the others answer at the same time.
async function gates(host: Host, workflow: string, count: number, config: object = {}, artifact?: unknown): Promise<string[]> {
  await host.workflow(
    workflow,
    [
      ...(artifact === undefined ? [] : [{ id: "draft", typeId: "core.identity", inputs: { proposal: { type: "static", value: artifact } } }]),
      { id: "gate", typeId: "core.approvalGate", config: { title: `Decide ${workflow}`, actions: ["accept", "reject"], ...config } },
    ],
    [],
    artifact === undefined ? [] : [{ id: "e", sourceNodeId: "draft", targetNodeId: "gate", sourceOutput: "proposal", targetInput: "input" } as object],
  );
  const runs: string[] = [];
  for (let i = 0; i < count; i++) runs.push(await host.runUntil(workflow, ["waiting-approval"]));
  return runs;
}

const list = (page: Page) => page.getByRole("navigation", { name: "Questions" });
const card = (page: Page) => page.getByRole("article");

test("approve a question on a phone-sized window", async ({ signedIn: page, host }) => {
  const [run] = await gates(host, "phone", 1, {}, { letter: "Dear customer, ".repeat(600), amount: 129 });
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(host.console);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  const header = page.getByRole("banner");
  expect((await header.boundingBox())?.height).toBeLessThanOrEqual(56);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("link", { name: "Inbox" }).click();
  await expect(page.getByRole("link", { name: "Inbox" })).toBeHidden();
  await page.getByRole("searchbox", { name: "Search questions" }).fill("Decide phone");
  await list(page).getByRole("link", { name: /Decide phone/ }).click();
  const accept = card(page).getByRole("button", { name: "Accept" });
  await expect(accept).toBeInViewport();
  await expect(page.getByRole("region", { name: "Under review" })).toContainText("Dear customer");
  await expectAccessibleInBothThemes(page);
  await accept.click();
  await expect(page.getByText("Answered: accept.")).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  await host.until(run as string, ["completed"]);
  await page.getByRole("link", { name: "All questions" }).click();
  await expect(page.getByRole("searchbox", { name: "Search questions" })).toBeVisible();
});

test("answer three questions with the keyboard alone", async ({ signedIn: page, host }) => {
  const runs = await gates(host, "keys", 3);
  await page.goto(`${host.console}inbox?workflow=keys`);
  await expect(list(page).getByRole("link")).toHaveCount(3);
  await page.keyboard.press("j");
  await expect(list(page).locator("[aria-current]")).toHaveText(/Decide keys/);
  await page.keyboard.press("k");
  for (const [i, action] of ["a", "r", "a"].entries()) {
    await expect(card(page).getByRole("button", { name: "Accept" })).toBeEnabled();
    await page.keyboard.press(action);
    await expect(card(page).getByRole("button", { name: action === "a" ? "Accept" : "Reject" })).toBeFocused();
    expect(await statuses(host, runs, "waiting-approval"), "no key alone answers").toBe(3 - i);
    await page.keyboard.press("Enter");
    await expect(page.getByText(/^Answered: (accept|reject)/)).toBeVisible();
    if (i === 2) break;
    await expect(page.getByRole("link", { name: "Next question" })).toBeFocused();
    await page.keyboard.press("Enter");
  }
  await expect(page.getByRole("link", { name: "Next question" })).toHaveCount(0);
  await expect(list(page).getByRole("link")).toHaveCount(0);
  for (const run of runs) await host.until(run, ["completed", "failed"]);
  expect(await statuses(host, runs, "completed")).toBe(2);
});

async function statuses(host: Host, runs: string[], wanted: string): Promise<number> {
  const all = await Promise.all(runs.map((run) => host.json<{ status: string }>("GET", `/v1/runs/${run}`)));
  return all.filter(({ status }) => status === wanted).length;
}

const colleague = "hk_test_5d20c9b47ae1f683";

test("claim a question, find it among mine, and hand it over", async ({ page }) => {
  const host = new Host("", ["--durability", "sync", "--api-key", `${colleague}=default:*,user:ben`]);
  try {
    await host.start();
    await signIn(page, host, key);
    await gates(host, "claims", 2);
    await page.goto(`${host.console}inbox?workflow=claims`);
    const assignee = page.getByRole("region", { name: "Assignee" });
    await expect(assignee).toContainText("Not assigned");
    await page.keyboard.press("m");
    await expect(assignee.getByRole("button", { name: "Claim" })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(assignee).toContainText("Assigned to you");
    await expectAccessibleEverywhere(page);
    await page.getByRole("combobox", { name: "Assignee" }).selectOption("Assigned to me");
    await expect(list(page).getByRole("link")).toHaveCount(1);
    await expect(list(page).getByRole("link")).toContainText("assigned to you");

    // It outlives a crash of the host.
    await host.kill();
    await host.start();
    await page.reload();
    await expect(list(page).getByRole("link")).toHaveCount(1);
    await page.getByRole("combobox", { name: "Assignee" }).selectOption("Unassigned");
    await expect(list(page).getByRole("link")).toHaveCount(1);
    await expect(list(page).getByRole("link")).not.toContainText("assigned to you");
    await page.getByRole("combobox", { name: "Assignee" }).selectOption("Assigned to me");

    await list(page).getByRole("link").click();
    await assignee.getByRole("button", { name: "Assign…" }).click();
    const dialog = page.getByRole("dialog", { name: "Assign the question" });
    await dialog.getByRole("combobox", { name: /^User/ }).fill("ben");
    await dialog.getByRole("button", { name: "Assign", exact: true }).click();
    await expect(assignee).toContainText("Assigned to ben by you");
    await signIn(page, host, colleague);
    await page.goto(`${host.console}inbox?assignee=me`);
    await expect(list(page).getByRole("link")).toHaveCount(1);
    await assignee.getByRole("button", { name: "Release" }).click();
    await expect(page.getByText("No question matches the filters.")).toBeVisible();
  } finally {
    await host.remove();
  }
});

test("a question that a colleague has claimed in the meantime shows who has it, and can be taken over", async ({ page }) => {
  const host = new Host("", ["--api-key", `${colleague}=default:*,user:ben`]);
  try {
    await host.start();
    await signIn(page, host, key);
    const [run] = await gates(host, "race", 1);
    await page.goto(`${host.console}inbox?workflow=race`);
    const assignee = page.getByRole("region", { name: "Assignee" });
    await expect(assignee).toContainText("Not assigned");
    const refused = page.waitForResponse((r) => r.url().endsWith("/assignee"));
    await page.route("**/v1/interrupts**", (route) => refused.then(() => route.continue())); // it does not hear of the claim before
    const claimed = await host.call("POST", `/v1/runs/${run}/interrupts/gate/assignee`, {}, { Authorization: `Bearer ${colleague}` });
    expect(claimed.status).toBe(200);
    await assignee.getByRole("button", { name: "Claim" }).click();
    expect((await refused).status()).toBe(409);
    await expect(page.getByRole("alert")).toContainText("ben has claimed this question in the meantime. Choose another question, or take this one over.");
    await expect(assignee).toContainText("Assigned to ben");
    await expectAccessibleEverywhere(page);
    await page.getByRole("alert").getByRole("button", { name: "Take over" }).click();
    await expect(assignee).toContainText("Assigned to you");
    await expect(page.getByRole("alert")).toHaveCount(0);
  } finally {
    await host.remove();
  }
});

test("accept several questions together where their workflow allows it", async ({ signedIn: page, host }) => {
  const together = await gates(host, "bulk-yes", 3, { bulkAnswers: true });
  const alone = await gates(host, "bulk-no", 1);
  await page.goto(`${host.console}inbox?text=bulk-`);
  await expect(list(page).getByRole("link")).toHaveCount(4);
  await expect(list(page).getByRole("checkbox")).toHaveCount(3);
  await page.getByRole("checkbox", { name: "Select all 3 that can be answered together" }).check();
  // One is answered by another person in between.
  await page.getByRole("button", { name: "Accept 3…" }).click();
  const dialog = page.getByRole("dialog", { name: "Accept 3 questions" });
  await expect(dialog.getByRole("listitem")).toHaveCount(3);
  await host.json("POST", `/v1/runs/${together[1]}/interrupts/gate`, { resumeValue: { action: "reject" } });
  await dialog.getByLabel("Comment").fill("checked");
  await expectAccessibleEverywhere(page);
  await dialog.getByRole("button", { name: "Accept 3 questions" }).click();
  await expect(dialog.getByText("2 answered, 1 already closed or asked again")).toBeVisible();
  await dialog.locator("form").getByRole("button", { name: "Close" }).click();
  await expect(list(page).getByRole("link")).toHaveCount(1);
  for (const run of [together[0], together[2]]) await host.until(run as string, ["completed"]);
  const received = (await host.events(together[0] as string)).find((e) => e.type === "approval.received");
  expect(received?.payload).toMatchObject({ action: "accept", feedback: "checked" });
  expect(await statuses(host, alone, "waiting-approval")).toBe(1);
});

test("correct a proposal in a form and accept it", async ({ signedIn: page, host }) => {
  const proposal = { to: "Ms Ito", amount: 129, gift: false, lines: [{ sku: "lamp", count: 2 }], note: "", code: null };
  const [run] = await gates(host, "correct", 1, { actions: ["accept", "edit-accept"] }, proposal);
  await page.goto(`${host.console}inbox?workflow=correct`);
  await page.getByRole("button", { name: "Edit and accept…" }).click();
  const form = page.getByRole("form", { name: "Edited version" });
  await form.getByRole("textbox", { name: "amount" }).fill("a lot");
  await form.getByRole("button", { name: "Accept the edited version" }).click();
  await expect(form.getByText(/enter a number/)).toBeVisible();
  await form.getByRole("textbox", { name: "amount" }).fill("99.50");
  await form.getByRole("textbox", { name: "count" }).fill("1");
  await form.getByRole("radio", { name: "Yes" }).check();
  await expectAccessibleEverywhere(page);
  await form.getByRole("button", { name: "Accept the edited version" }).click();
  await expect(page.getByText("Answered: edit-accept.")).toBeVisible();
  await expect(page.getByRole("region", { name: "The answer" })).toContainText("99.50");
  await host.until(run as string, ["completed"]);
  const resolved = (await host.events(run as string)).find((e) => e.type === "interrupt.resolved");
  const value = resolved?.payload.resumeValue as { action: string; editedArtifactData: unknown };
  expect(value.action).toBe("edit-accept");
  expect(value.editedArtifactData).toEqual({ ...proposal, amount: 99.5, gift: true, lines: [{ sku: "lamp", count: 1 }] });
});

test("find out who answered a question, and when", async ({ signedIn: page, host }) => {
  const [run] = await gates(host, "past", 1, {}, { letter: "Dear Ms Ito" });
  await page.goto(`${host.console}inbox?workflow=past`);
  await list(page).getByRole("link").click();
  await card(page).getByRole("textbox", { name: "Comment" }).fill("looks fine");
  await card(page).getByRole("button", { name: "Accept" }).click();
  await expect(page.getByText("Answered: accept.")).toBeVisible();
  await host.until(run as string, ["completed"]);
  await page.reload();
  await expect(page.getByText(/^Already answered by /)).toBeVisible();
  await page.getByRole("link", { name: "Answered", exact: true }).click();
  const entry = list(page).getByRole("link", { name: /Decide past/ });
  await expect(entry).toContainText(/accept by \S+/);
  await entry.click();
  await expect(card(page)).toContainText("Already answered by ");
  await expect(card(page).getByText("looks fine")).toBeVisible();
  await card(page).getByText("What was reviewed").click();
  await expect(card(page)).toContainText("Dear Ms Ito");
  await expect(card(page).getByRole("button", { name: "Accept" })).toHaveCount(0);
  await expectAccessibleEverywhere(page);
  await page.getByRole("link", { name: "The day before" }).click();
  await expect(page.getByText("No question was answered on this day.")).toBeVisible();
});

test("see which question is due first, and on which day", async ({ signedIn: page, host }) => {
  await gates(host, "due-late", 1, { timeoutSec: 23.5 * 3600 });
  await gates(host, "due-soon", 1, { timeoutSec: 1800 });
  await gates(host, "due-never", 1);
  await page.goto(`${host.console}inbox?text=due-`);
  await expect(list(page).getByRole("link")).toHaveText([/due-soon/, /due-late/, /due-never/]);
  const due = list(page).getByRole("link", { name: /due-late/ }).locator("time.due");
  const at = new Date((await due.getAttribute("datetime")) as string);
  const today = new Date().getUTCDate();
  await expect(due).toContainText(at.getUTCDate() === today ? at.toISOString().slice(11, 16) : `tomorrow, ${at.toISOString().slice(11, 16)}`);
  await page.getByRole("combobox", { name: "Due" }).selectOption("Without a due time");
  await expect(list(page).getByRole("link")).toHaveText([/due-never/]);
  await expect(page).toHaveURL(/due=none/);
  await page.getByRole("button", { name: "Clear filters" }).click();
  await expect(page).not.toHaveURL(/due=|text=/);
});

test("see on every page how many questions wait for me", async ({ signedIn: page, host }) => {
  // Other tests ask and answer on the same host, so the number is compared with the host's.
  const count = async (): Promise<number> => (await host.json<{ answerable: number }>("GET", "/v1/interrupts:count")).answerable;
  await gates(host, "counted", 1);
  await page.goto(`${host.console}capabilities`);
  await expect(async () => {
    const n = await count();
    expect(await page.title()).toMatch(new RegExp(`^\\(${n}\\) Capabilities`));
    expect(await page.getByRole("link", { name: /^Inbox/ }).textContent()).toContain(`Inbox${n} open question`);
  }).toPass();
});

test("read times in UTC", async ({ signedIn: page, host, browser }) => {
  const run = await host.runUntil("steps", ["completed"]);
  const { createdAt } = await host.json<{ createdAt: string }>("GET", `/v1/runs/${run}`);
  const context = await browser.newContext({ storageState: await page.context().storageState(), timezoneId: "Asia/Tokyo", locale: "en-GB" });
  const tokyo = await context.newPage();
  await tokyo.goto(`${host.console}runs/${run}`);
  const hour = (offset: number): string => String((new Date(createdAt).getUTCHours() + offset) % 24).padStart(2, "0");
  const created = tokyo.locator(".facts time").first();
  await expect(created).toContainText(`, ${hour(9)}:`);
  await expect(created).toContainText("GMT+9");
  await tokyo.getByRole("button", { name: "Menu" }).click();
  await tokyo.getByRole("combobox", { name: "Time zone" }).selectOption("UTC");
  await expect(created).toContainText(`, ${hour(0)}:`);
  await expect(created).toContainText("UTC");
  await tokyo.reload();
  await expect(created).toContainText("UTC");
  await context.close();
});
