import type { Page } from "@playwright/test";
import { expect, expectAccessible, signIn, test } from "./fixtures";
import { readKey, type Host } from "./host";
import { expectAccessibleEverywhere } from "./themes";

type Interrupt = { interruptId: string; interruptToken: string };

async function asked(host: Host, workflow: string): Promise<{ runId: string } & Interrupt> {
  const runId = await host.runUntil(workflow, ["waiting-approval", "waiting-input", "waiting-external"]);
  const { interrupt } = await host.json<{ interrupt: Interrupt }>("GET", `/v1/runs/${runId}`);
  return { runId, ...interrupt };
}

const gate = (host: Host, id: string, config: object, artifact?: unknown): Promise<void> =>
  host.workflow(
    id,
    [
      ...(artifact === undefined ? [] : [{ id: "draft", typeId: "core.identity", inputs: { letter: { type: "static", value: artifact } } }]),
      { id: "gate", typeId: "core.approvalGate", config: { title: `Decide ${id}`, ...config } },
    ],
    [],
    artifact === undefined ? [] : [{ id: "e", sourceNodeId: "draft", targetNodeId: "gate", sourceOutput: "letter", targetInput: "input" } as object],
  );

/** The bodies of the answers that a page sends. */
function answers(page: Page): unknown[] {
  const sent: unknown[] = [];
  page.on("request", (r) => {
    if (r.method() === "POST" && r.url().includes("/interrupts/")) sent.push(r.postDataJSON());
  });
  return sent;
}

test("C6a three questions are three controls; problems are shown before sending", async ({ signedIn: page, host }) => {
  await host.workflow("c6a", [
    {
      id: "ask",
      typeId: "core.clarificationGate",
      config: {
        questions: [
          { id: "colour", question: "Which colour?", schema: { enum: ["red", "blue"] } },
          { id: "gift", question: "Is it a gift?", schema: { type: "boolean" } },
          { id: "note", question: "What shall the card say?", schema: { type: "string", maxLength: 10 } },
        ],
      },
    },
  ]);
  const { runId, interruptId } = await asked(host, "c6a");
  const sent = answers(page);
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  const card = page.getByRole("article");
  await expect(card.getByRole("group")).toHaveCount(2);
  await expect(card.getByRole("group").nth(0)).toHaveAccessibleName("Which colour?");
  await expect(card.getByRole("group").nth(1)).toHaveAccessibleName("Is it a gift?");
  await card.getByRole("radio", { name: "blue" }).check();
  await card.getByRole("textbox", { name: "What shall the card say?" }).fill("far too long a text");
  await card.getByRole("button", { name: "Send the answers" }).click();
  await expect(card.getByText("answer yes or no")).toBeVisible();
  await expect(card.getByRole("textbox")).toHaveAccessibleDescription(/at most 10 characters, this has 19/);
  expect(sent).toEqual([]);
  await expectAccessibleEverywhere(page);
  await card.getByRole("radio", { name: "No" }).check();
  await card.getByRole("textbox").fill("For you");
  await card.getByRole("button", { name: "Send the answers" }).click();
  await expect(card.getByText("Answered")).toBeVisible();
  expect(sent).toEqual([{ resumeValue: { answers: { colour: "blue", gift: false, note: "For you" } } }]);
  await host.until(runId, ["completed"]);
});

test("C6b an approval offers exactly the actions of its gate, and shows what it is about", async ({ signedIn: page, host }) => {
  await gate(host, "c6b", { actions: ["accept", "edit-accept", "ask"] }, { amount: "129.00", to: "Ms Ito" });
  await gate(host, "c6b-two", { actions: ["reject", "refine"] });
  const two = await asked(host, "c6b-two");
  await page.goto(`${host.console}inbox?i=${two.interruptId}`);
  const decision = page.getByRole("group", { name: "Decision" });
  await expect(decision.getByRole("button")).toHaveText(["Reject", "Refine…"]);

  const { runId, interruptId } = await asked(host, "c6b");
  const sent = answers(page);
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  await expect(decision.getByRole("button")).toHaveText(["Accept", "Edit and accept…", "Ask…"]);
  await expect(page.getByRole("region", { name: "Under review" })).toContainText("129.00");
  await decision.getByRole("button", { name: "Ask…" }).click();
  await page.getByRole("textbox", { name: "Your question" }).fill("Whose card?");
  await page.getByRole("button", { name: "Send the question" }).click();
  await expect(page.getByText("Your question was sent; the gate stays open.")).toBeVisible();
  await decision.getByRole("button", { name: "Edit and accept…" }).click();
  await expectAccessible(page);
  await page.getByRole("textbox", { name: "amount" }).fill("99.00");
  await page.getByRole("button", { name: "Accept the edited version" }).click();
  await expect(page.getByText("Answered: edit-accept.")).toBeVisible();
  expect(sent).toEqual([{ resumeValue: { action: "ask", question: "Whose card?" } }, { resumeValue: { action: "edit-accept", editedArtifactData: { amount: "99.00", to: "Ms Ito" } } }]);
  await host.until(runId, ["completed"]);
});

test("C6c votes are counted in every tab, and a late answer shows who answered before", async ({ signedIn: page, host }) => {
  await gate(host, "c6c", { actions: ["accept", "reject"], requiredApprovals: 3 });
  const { runId, interruptId } = await asked(host, "c6c");
  const url = `${host.console}inbox?i=${interruptId}`;
  await page.goto(url);
  const other = await page.context().newPage();
  await other.goto(url);
  await expect(other.locator(".votes")).toHaveText("0 of 3");
  await page.getByRole("textbox", { name: "Vote as" }).fill("ann");
  await page.getByRole("button", { name: "Accept" }).click();
  await expect(page.getByText("Your vote was counted: 1 of 3.")).toBeVisible();
  await expect(page.locator(".votes")).toHaveText("1 of 3");
  await expect(other.locator(".votes")).toHaveText("1 of 3");
  for (const voter of ["bob", "cid"]) {
    await host.json("POST", `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept", voter } });
  }
  await expect(other.getByText(/^Already answered by /)).toBeVisible();
  await expect(page.getByText(/^Already answered by /)).toBeVisible();
  await other.close();
});

test("C6c an answer that loses the race is no error", async ({ signedIn: page, host }) => {
  await gate(host, "c6c-late", { actions: ["accept"] });
  const { runId, interruptId, interruptToken } = await asked(host, "c6c-late");
  // The page of a token follows no run, so it learns of the other answer from the host's 409.
  await page.goto(`${host.console}answer#${interruptToken}`);
  await expect(page.getByRole("button", { name: "Accept" })).toBeEnabled();
  await host.json("POST", `/v1/runs/${runId}/interrupts/gate`, { resumeValue: { action: "accept" } });
  await page.getByRole("button", { name: "Accept" }).click();
  await expect(page.getByText("Already answered")).toBeVisible();
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  await expect(page.getByText("This question is no longer open.")).toBeVisible();
});

test("C6d a key that may not answer sees why, and no bare 403", async ({ page, host }) => {
  await gate(host, "c6d", { actions: ["accept", "reject"] });
  const { runId, interruptId } = await asked(host, "c6d");
  await signIn(page, host, readKey);
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  await expect(page.getByRole("button", { name: "Accept" })).toBeDisabled();
  await expect(page.getByText("Your key cannot answer: it lacks the scope approvals:respond.")).toBeVisible();
  await page.goto(`${host.console}runs/${runId}`);
  await expect(page.getByRole("button", { name: "Accept" })).toBeDisabled();
  await expect(page.locator("main")).not.toContainText("403");
});

test("C6e a double click, Enter twice and the way back send one answer", async ({ signedIn: page, host }) => {
  await gate(host, "c6e", { actions: ["accept"] });
  const { runId, interruptId } = await asked(host, "c6e");
  const sent = answers(page);
  await page.goto(`${host.console}inbox`);
  await page.goto(`${host.console}inbox?workflow=c6e&i=${interruptId}`);
  const shown = page.waitForRequest((r) => r.method() === "POST" && r.url().includes("/interrupts/"));
  await page.getByRole("button", { name: "Accept" }).dblclick();
  await expect(page.getByText("Answered: accept.")).toBeVisible();
  expect((await shown).headers()["waybill-interrupt-id"]).toBe(interruptId);
  await page.goBack();
  await page.goForward();
  await expect(page.getByText(/no longer open/)).toBeVisible();
  expect(sent).toHaveLength(1);
  await host.until(runId, ["completed"]);

  const again = await asked(host, "c6e");
  await page.goto(`${host.console}inbox?workflow=c6e&i=${again.interruptId}`);
  const accept = page.getByRole("button", { name: "Accept" });
  await accept.focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Answered: accept.")).toBeVisible();
  expect(sent).toHaveLength(2);
});

test("C6f opening a link changes nothing, and answers without an account", async ({ page, host }) => {
  await gate(host, "c6f", { actions: ["accept"] });
  const { runId, interruptToken } = await asked(host, "c6f");
  const urls: string[] = [];
  page.on("request", (r) => urls.push(`${r.method()} ${r.url()}`));
  for (const method of ["GET", "HEAD"]) {
    const preview = await page.request.fetch(`${host.console}answer#${interruptToken}`, { method });
    expect(preview.status()).toBe(200);
  }
  await page.request.get(`${host.url}/v1/interrupts/${interruptToken}`);
  expect((await host.json<{ status: string }>("GET", `/v1/runs/${runId}`)).status).toBe("waiting-approval");
  await page.goto(`${host.console}answer#${interruptToken}`);
  await expect(page.getByRole("heading", { name: "Decide c6f" })).toBeVisible();
  await expectAccessible(page);
  expect((await host.json<{ status: string }>("GET", `/v1/runs/${runId}`)).status).toBe("waiting-approval");
  expect(urls.filter((u) => u.includes(interruptToken) && !u.includes("/v1/interrupts/"))).toEqual([]);
  await page.getByRole("button", { name: "Accept" }).click();
  await expect(page.getByText("Answered: accept.")).toBeVisible();
  await host.until(runId, ["completed"]);
  await page.reload();
  await expect(page.getByText("Already answered")).toBeVisible();
});
