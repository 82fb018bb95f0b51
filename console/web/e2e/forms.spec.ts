import { fileURLToPath } from "node:url";
import errors from "../src/gen/errors.json" with { type: "json" };
import { expect, signIn, test } from "./fixtures";
import { Host, key } from "./host";
import { expectAccessibleEverywhere } from "./themes";

const surface = {
  catalogVersion: "0.9.1",
  surface: {
    title: "Return",
    components: [
      { component: "heading", text: "Send it back", level: 1 },
      { component: "text", text: '<img src="https://evil.example/x" onerror="alert(1)"> Tell us why.' },
      { component: "field.text", id: "why", label: "Why?", required: true },
      { component: "field.date", id: "when", label: "When shall we fetch it?" },
      { component: "field.select", id: "how", label: "How?", required: true, options: [{ value: "post", label: "By post" }, { value: "shop", label: "In the shop" }] },
      { component: "field.checkbox", id: "box", label: "I have the box", default: true },
      { component: "action.button", id: "go", label: "Send it back now", action: { target: "resume" } },
    ],
  },
};

async function formed(host: Host): Promise<{ runId: string; interruptId: string }> {
  await host.workflow("form", [{ id: "form", typeId: "core.interrupt", config: { kind: "custom", data: { customKind: "ui.a2ui-surface", payload: surface } } }]);
  const runId = await host.runUntil("form", ["waiting-external"]);
  const { interrupt } = await host.json<{ interrupt: { interruptId: string } }>("GET", `/v1/runs/${runId}`);
  return { runId, interruptId: interrupt.interruptId };
}

test("C7a seven components are seven widgets with their labels, in their order", async ({ signedIn: page, host }) => {
  const { interruptId } = await formed(host);
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  const form = page.locator(".surface form");
  await expect(form.getByRole("heading", { name: "Send it back" })).toBeVisible();
  expect(await form.getByRole("heading").evaluateAll((hs) => hs.every((h) => Number(h.tagName[1]) > 2))).toBe(true);
  const controls = form.locator("input, select, button");
  await expect(controls).toHaveCount(5);
  for (const [i, name] of ["Why?", "When shall we fetch it?", "How?", "I have the box", "Send it back now"].entries()) {
    await expect(controls.nth(i)).toHaveAccessibleName(name);
  }
  await expect(form.getByRole("combobox")).toHaveValue("");
  await expectAccessibleEverywhere(page);
});

test("C7b a surface outside the catalogue is not rendered: the reason and its JSON are", async ({ signedIn: page, host }) => {
  // Only the page validates a surface under an approval.
  const odd = { catalogVersion: "0.9.2", surface: { components: [{ component: "field.text", id: "x", label: "Odd" }] } };
  await host.workflow(
    "c7b",
    [
      { id: "draft", typeId: "core.identity", inputs: { letter: { type: "static", value: odd } } },
      { id: "gate", typeId: "core.approvalGate", config: { title: "Decide", actions: ["accept"] } },
    ],
    [],
    [{ id: "e", sourceNodeId: "draft", targetNodeId: "gate", sourceOutput: "letter", targetInput: "input" }],
  );
  const runId = await host.runUntil("c7b", ["waiting-approval"]);
  await page.goto(`${host.console}runs/${runId}`);
  await expect(page.getByText("This form is not shown.")).toBeVisible();
  await expect(page.getByText('/catalogVersion: "0.9.2", this console supports 0.9.1')).toBeVisible();
  await expect(page.getByLabel("Odd")).toHaveCount(0);
  await page.getByText("Its JSON").click();
  await expect(page.locator(".surface, .note").getByText("“0.9.2”")).toBeVisible();
  await expect(page.getByRole("button", { name: "Accept" })).toBeEnabled();
});

test("C7c a surface is text, and its only way out is the answer", async ({ signedIn: page, host }) => {
  const { runId, interruptId } = await formed(host);
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  const form = page.locator(".surface form");
  await expect(form.getByText('<img src="https://evil.example/x" onerror="alert(1)"> Tell us why.')).toBeVisible();
  await expect(form.locator("img, a, script, iframe")).toHaveCount(0);
  const sent: string[] = [];
  page.on("request", (r) => {
    if (r.method() !== "GET" || !r.url().startsWith(host.url)) sent.push(`${r.method()} ${r.url()} ${r.postData() ?? ""}`);
  });
  page.on("popup", () => sent.push("popup"));
  page.on("websocket", () => sent.push("websocket"));
  await form.getByRole("button", { name: "Send it back now" }).click();
  await expect(form.getByText("Why?: this is required")).toBeVisible();
  await expect(form.getByLabel("Why?")).toBeFocused();
  await form.getByLabel("Why?").fill("too small");
  await page.keyboard.press("Enter");
  expect(sent).toEqual([]);
  await form.getByLabel("How?").selectOption("post");
  await page.getByText("Preview answer").click();
  await expect(page.getByText('"why": "too small"')).toBeVisible();
  await form.getByRole("button", { name: "Send it back now" }).click();
  await expect(page.getByText("Answered.")).toBeVisible();
  expect(sent).toEqual([`POST ${host.url}/v1/runs/${runId}/interrupts/form {"resumeValue":{"why":"too small","how":"post","box":true}}`]);
  await host.until(runId, ["completed"]);
});

test("C7d a form that is still written cannot be sent; what was typed and the focus outlive its end", async ({ signedIn: page, host }) => {
  const { runId, interruptId } = await formed(host);
  // This host sends only complete forms. Other hosts mark partial forms like partial envelopes.
  let written = 2;
  await page.route("**/v1/interrupts?*", async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { interrupts: { interrupt: { payload: { data: { partial?: object; payload: typeof surface } } } }[] };
    for (const { interrupt } of body.interrupts) {
      const { data } = interrupt.payload;
      if (!data.payload || written > 5) continue;
      const { components } = data.payload.surface;
      data.payload = { ...data.payload, surface: { ...data.payload.surface, components: [components[2], components[6]].concat(components.slice(3, written)) as typeof components } };
      data.partial = { isPartial: true, index: written, total: -1 };
    }
    await route.fulfill({ response: answer, json: body });
  });
  await page.goto(`${host.console}inbox?i=${interruptId}`);
  const form = page.locator(".surface form");
  const go = form.getByRole("button", { name: "Send it back now" });
  await expect(go).toBeDisabled();
  await expect(page.getByText("The form is still being written.")).toBeVisible();
  await form.getByLabel("Why?").fill("too small");
  await page.keyboard.press("Enter");
  await expectAccessibleEverywhere(page);
  await form.getByLabel("Why?").focus();
  written = 6;
  await host.runUntil("steps", ["completed"]); // something happens, so the list is read again
  await expect(form.getByLabel("How?")).toBeVisible();
  await expect(go).toBeEnabled();
  await expect(page.getByText("The form is still being written.")).toHaveCount(0);
  await expect(form.getByLabel("Why?")).toBeFocused();
  await expect(form.getByLabel("Why?")).toHaveValue("too small");
  expect((await host.json<{ status: string }>("GET", `/v1/runs/${runId}`)).status).toBe("waiting-external");
});

test("C7e a form of untrusted content cannot be accepted, and the page shows the reason", async ({ page, basePath }) => {
  const host = new Host(basePath, ["--mcp-server", `forms=stdio:${process.execPath} ${fileURLToPath(new URL("mcp.mjs", import.meta.url))}`]);
  try {
    await host.start();
    await signIn(page, host, key);
    await host.workflow(
      "c7e",
      [
        { id: "draft", typeId: "core.mcp.callTool", config: { server: "forms", tool: "echo", arguments: surface } },
        { id: "gate", typeId: "core.approvalGate", config: { title: "Send it?", actions: ["accept", "reject", "edit-accept", "ask"] } },
      ],
      [],
      [{ id: "e", sourceNodeId: "draft", targetNodeId: "gate", sourceOutput: "output", targetInput: "input" }],
    );
    const runId = await host.runUntil("c7e", ["waiting-approval"]);
    await page.goto(`${host.console}runs/${runId}`);
    await expect(page.locator(".surface").getByRole("heading", { name: "Send it back" })).toBeVisible();
    await expect(page.getByText("untrusted content", { exact: true })).toBeVisible();
    await expect(page.getByText("untrusted_content_blocks_approval")).toBeVisible();
    await expect(page.getByText(errors.untrusted_content_blocks_approval.meaning)).toBeVisible();
    const decision = page.getByRole("group", { name: "Decision" });
    await expect(decision.getByRole("button", { name: "Accept", exact: true })).toBeDisabled();
    await expect(decision.getByRole("button", { name: "Edit and accept…" })).toBeDisabled();
    await expectAccessibleEverywhere(page);
    await decision.getByRole("button", { name: "Reject" }).click();
    await expect(page.getByText("Answered: reject.")).toBeVisible();
  } finally {
    await host.remove();
  }
});
