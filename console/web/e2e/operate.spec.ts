import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, signIn, test } from "./fixtures";
import { Host, key, prepare, readKey } from "./host";
import { expectAccessibleEverywhere } from "./themes";

test("see what the installation does now", async ({ signedIn: page, host }) => {
  await host.runUntil("fail", ["failed"]);
  await page.goto(`${host.console}system`);
  await expect(page.getByRole("table", { name: "Dispatchers" }).getByRole("row")).toHaveCount(2);
  await expect(page.getByRole("table", { name: "Dispatchers" })).toContainText("held");
  await expect(page.getByRole("table", { name: "Model providers" }).getByRole("rowheader", { name: "sample" })).toBeVisible();
  await expect(page.getByRole("region", { name: "Queue" })).toContainText("Runs waiting for a dispatcher");
  await expect(page.getByRole("region", { name: "Run log (NATS)" })).toContainText(/Size\s*[\d.]+ [kMG]?B/);
  await expect(page.getByRole("region", { name: "Read model (database)" })).toContainText(/Records behind the log\s*\d/);
  await expect(page.getByRole("region", { name: "Failed runs of the last 24 hours" }).getByRole("link", { name: /^fail / }).first()).toBeVisible();
  await expectAccessibleEverywhere(page);
});

test("verify the audit log and find who cancelled a run", async ({ signedIn: page, host }) => {
  const run = await host.run("wait");
  await host.json("POST", `/v1/runs/${run}/cancel`, { reason: "not needed" });
  await page.goto(`${host.console}system/audit`);
  const entry = page.getByRole("table", { name: "Audit entries" }).getByRole("row").filter({ hasText: run });
  await expect(entry).toContainText("run.cancelled");
  await entry.getByText("Show").click();
  await expect(entry).toContainText("not needed");
  await page.getByRole("combobox", { name: "Action" }).selectOption("run.cancelled");
  await expect(page.getByRole("table", { name: "Audit entries" })).not.toContainText("workflow.registered");
  await page.getByRole("button", { name: "Verify the log" }).click();
  await expect(page.getByText("The log is intact.")).toBeVisible();
  await expectAccessibleEverywhere(page);
  await entry.getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("wait");
});

test("see who is signed in with which scopes", async ({ page, host }) => {
  await signIn(page, host, readKey);
  await page.goto(`${host.console}system/access`);
  await expect(page.getByRole("heading", { name: "You are signed in" })).toBeVisible();
  await expect(page.getByRole("listitem").filter({ hasText: "runs:read" })).toContainText("read runs and their events");
  await expect(page.getByRole("main")).not.toContainText("runs:cancel");
  await expect(page.getByText("This key lacks the scope audit:read.")).toBeVisible();
  await expectAccessibleEverywhere(page);
  await page.goto(`${host.console}system`);
  await expect(page.getByText("This key lacks the scope system:read.")).toBeVisible();
  await expect(page.getByRole("table", { name: "Dispatchers" })).toHaveCount(0);
});

test("hold a run so that it cannot be deleted, then delete it", async ({ signedIn: page, host }) => {
  const run = await host.runUntil("steps", ["completed"]);
  await page.goto(`${host.console}runs/${run}`);
  await page.getByRole("button", { name: "Hold…" }).click();
  const hold = page.getByRole("dialog", { name: "Set a legal hold" });
  await hold.getByLabel("Reason").fill("case 17");
  await expectAccessibleEverywhere(page);
  await hold.getByRole("button", { name: "Set the hold" }).click();
  await expect(hold).toBeHidden();

  await page.getByRole("button", { name: "Delete…" }).click();
  const erase = page.getByRole("dialog", { name: "Delete this run" });
  await erase.getByRole("button", { name: "Delete the run" }).click();
  await expect(erase.getByRole("alert")).toContainText("hold");
  await erase.getByRole("button", { name: "Go back" }).click();

  await page.goto(`${host.console}system/data`);
  const row = page.getByRole("table", { name: "Legal holds" }).getByRole("row").filter({ hasText: "case 17" });
  await expect(row).toBeVisible();
  await expect(page.getByRole("region", { name: "Retention", exact: true })).toContainText("unlimited");
  await expectAccessibleEverywhere(page);
  await row.getByRole("button", { name: /^Remove the hold/ }).click();
  await expect(row).toHaveCount(0);

  await page.goto(`${host.console}runs/${run}`);
  await page.getByRole("button", { name: "Delete…" }).click();
  await erase.getByRole("button", { name: "Delete the run" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Runs" })).toBeVisible();
  expect((await host.call("GET", `/v1/runs/${run}`)).status).toBe(404);
});

test("a run that goes on cannot be deleted, and the page says why", async ({ signedIn: page, host }) => {
  const run = await host.runUntil("gate", ["waiting-approval"]);
  await page.goto(`${host.console}runs/${run}`);
  await expect(page.getByRole("button", { name: "Delete…" })).toHaveAccessibleDescription("Only a run that has ended can be deleted. Cancel it first.");
});

/** A server whose certificate the host trusts. It refuses events until a test lets it accept them. */
async function receiver(dir: string): Promise<{ server: Server; url: string; accept: () => void; got: string[] }> {
  const [cert, privateKey] = [join(dir, "cert.pem"), join(dir, "key.pem")];
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-keyout", privateKey, "-out", cert, ...subject], { stdio: "ignore" });
  const got: string[] = [];
  let accepts = false;
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(privateKey) }, (request, answer) => {
    got.push(String(request.headers["webhook-id"]));
    request.resume().on("end", () => answer.writeHead(accepts ? 204 : 500).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  process.env.SSL_CERT_FILE = cert;
  return { server, url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, accept: () => (accepts = true), got };
}

test("register a webhook, and send a failed delivery again", async ({ page, basePath }) => {
  const host = new Host(basePath, ["--webhook-allow", "127.0.0.1", "--webhook-max-attempts", "1"]);
  const to = await receiver(host.dir);
  try {
    await host.start();
    await prepare(host);
    await signIn(page, host, key);
    await page.goto(`${host.console}system/webhooks`);
    await expect(page.getByText("No webhooks.")).toBeVisible();
    await page.getByRole("button", { name: "Register a webhook…" }).click();
    const dialog = page.getByRole("dialog", { name: "Register a webhook" });
    await dialog.getByLabel("URL").fill("https://10.1.2.3/hook");
    await dialog.getByRole("button", { name: "Register" }).click();
    await expect(dialog.getByRole("alert")).toBeVisible();
    await dialog.getByLabel("URL").fill(to.url);
    await dialog.getByLabel("Events").fill("run.completed");
    await expectAccessibleEverywhere(page);
    await dialog.getByRole("button", { name: "Register" }).click();
    await expect(dialog.locator("code")).toHaveText(/^[0-9a-f]{64}$/);
    await dialog.locator("form").getByRole("button", { name: "Close" }).click();

    const run = await host.runUntil("steps", ["completed"]);
    await expect.poll(() => to.got.length).toBe(1);
    const failed = page.getByRole("table", { name: "Failed deliveries" });
    await expect(async () => {
      await page.getByRole("button", { name: "Reload" }).click();
      await expect(failed.getByRole("row")).toHaveCount(2, { timeout: 500 });
    }).toPass();
    await expect(failed).toContainText("run.completed");
    await expectAccessibleEverywhere(page);
    await failed.getByRole("button", { name: /^Send again/ }).click();
    await expect(page.getByRole("alert")).toContainText("Not delivered: ");
    to.accept();
    await failed.getByRole("button", { name: /^Send again/ }).click();
    await expect(page.getByText("No delivery failed.")).toBeVisible();
    expect(to.got).toHaveLength(3);
    expect(new Set(to.got).size, "the receiver can tell that it is the same event").toBe(1);
    expect(run).toBeTruthy();

    await page.getByRole("button", { name: "Delete the webhook…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete the webhook" }).click();
    await expect(page.getByText("No webhooks.")).toBeVisible();
  } finally {
    delete process.env.SSL_CERT_FILE;
    to.server.close();
    await host.remove();
  }
});
