import { expect, test } from "./fixtures";
import type { Host } from "./host";
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
  // A surface that stands under an approval is judged by nobody before the page.
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
  await expect(page.getByText('/catalogVersion: "0.9.2", and this console shows 0.9.1')).toBeVisible();
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
