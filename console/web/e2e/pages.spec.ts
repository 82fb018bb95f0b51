import { expect, test } from "./fixtures";
import errors from "../src/gen/errors.json" with { type: "json" };
import { asking, envelope, kind, picture, program } from "./model";
import { expectAccessibleInBothThemes } from "./themes";

type Row = { meaning: string; next: string; owner: string };

test("C11 an error shows its code, meaning, next step and owner from the table", async ({ signedIn: page, host }) => {
  for (const [code, row] of Object.entries(errors as Record<string, Row>)) {
    expect.soft(row.next, code).toMatch(/\S/);
    expect.soft(row.owner, code).toMatch(/^(model|workflow author|operator|caller)$/);
  }
  await asking(host, "c11", { envelopeContract: { accepts: [kind] } });
  await program(host, "c11", envelope("media.image", picture()));
  const runId = await host.runUntil("c11", ["failed"]);
  const { meaning, next } = errors.envelope_contract_violation;
  for (const url of [`runs/${runId}`, `runs/${runId}/envelopes`]) {
    await page.goto(host.console + url);
    const shown = page.locator(".explanation").first();
    await expect(shown.getByText("envelope_contract_violation")).toBeVisible();
    await expect(shown).toContainText(meaning);
    await expect(shown).toContainText(next);
    await expect(shown).toContainText("the workflow's author");
  }
});

const routes = ["inbox", "inbox?view=answered", "capabilities", "system", "system/webhooks", "system/audit", "system/data", "system/access", "system/about", "diff", "answer", "api"];

for (const route of routes) {
  test(`C10a ${route} is accessible in both themes and at phone width`, async ({ signedIn: page, host }) => {
    test.setTimeout(60_000);
    await page.goto(host.console + route);
    await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
    if (route === "api") await expect(page.locator(".opblock").first()).toBeVisible({ timeout: 20_000 });
    if (route === "capabilities") for (const part of ["Envelope kinds", "Capabilities of models", "Substitutions in the last hour"]) await expect(page.getByRole("heading", { name: part })).toBeVisible();
    await expectAccessibleInBothThemes(page);
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      expect.soft(await page.evaluate(() => document.documentElement.scrollWidth), `${route} at ${width}`).toBeLessThanOrEqual(width);
    }
  });
}

test("the capabilities page shows advertised and enforced capabilities, models and substitutions", async ({ signedIn: page, host }) => {
  const { runs } = await host.json<{ runs: { runId: string }[] }>("GET", "/v1/runs?workflowId=demo-recovered");
  await host.until(runs[0]?.runId as string, ["completed"]);
  await page.goto(`${host.console}capabilities`);
  const row = (name: string) => page.getByRole("region", { name: "Model capabilities" }).getByRole("row").filter({ has: page.getByRole("rowheader", { name }) });
  await expect(row("structured-output").getByRole("cell")).toHaveText([/yes/, /yes/, /sample.*sample-1/]);
  await expect(row("audio-output").getByRole("cell")).toHaveText(["no", "nothing requires it", "none known"]);
  await row("structured-output").getByText(/^by \d types?/).click();
  await expect(row("structured-output")).toContainText("vendor.waybill.demo.triage");

  const replaced = page.getByRole("region", { name: "Model substitutions" }).getByRole("row").filter({ hasText: "sample-plain" });
  await expect(replaced).toContainText("sample·sample-stumbles");
  await expect(replaced).toContainText("structured-output");
  await replaced.getByRole("link").first().click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("demo-recovered");
});

test("C1a the API page calls only the host, violates no policy, and tries a request with the session", async ({ signedIn: page, host }) => {
  test.setTimeout(60_000);
  const requests: string[] = [];
  page.on("request", (r) => requests.push(r.url()));
  await page.goto(`${host.console}api`);
  await expect(page.getByText("started with --grpc-reflection")).toBeVisible(); // else the command that is shown fails
  await page.locator(".opblock-summary", { hasText: "/v1/workflows" }).first().click();
  await page.getByRole("button", { name: "Try it out" }).click();
  await page.getByRole("button", { name: "Execute" }).click();
  await expect(page.locator(".live-responses-table tr.response .response-col_status").first()).toContainText("200");
  expect(requests.filter((r) => !r.startsWith(host.url) && !/^(data|blob):/.test(r))).toEqual([]);
});
