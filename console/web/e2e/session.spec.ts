import { key, readKey } from "./host";
import { expect, expectAccessible, test, watch, withMortal } from "./fixtures";

test("C1a only this host is called, and the policy is never violated", async ({ signedIn: page, host }) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const runId = await host.runUntil("steps", ["completed"]);
  const answer = await page.goto(host.console);
  expect(answer?.headers()["content-security-policy"]).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  );
  await page.goto(`${host.console}runs/${runId}`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("steps");
  await expect.poll(() => page.evaluate(() => [...document.fonts].map((font) => `${font.family.replaceAll('"', "")} ${font.status}`))).toEqual(["Inter Variable loaded"]);
  expect(asked.filter((url) => url.endsWith(".woff2"))).toHaveLength(2); // a page loads it once: the preload is used
  expect(asked.length).toBeGreaterThan(3);
  expect(asked.filter((url) => !url.startsWith(`${new URL(host.url).origin}/`))).toEqual([]);
});

test("C1b without a credential there is a sign-in page and nothing of a run", async ({ page, host }) => {
  const runId = await host.runUntil("steps", ["completed"]);
  expect((await fetch(`${host.url}/v1/runs`)).status).toBe(401);
  const answer = await page.goto(`${host.console}runs/${runId}`);
  expect(await answer?.text()).not.toContain(runId);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Sign in to Waybill");
  await expectAccessible(page);
  await page.getByLabel("API key").fill("no-such-key");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toHaveText("This key is not valid.");
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText("steps");
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state, document.cookie]));
  expect(kept).not.toContain(key);
});

test("C1b the link that the host prints signs in once and leaves no trace of its code", async ({ page, host, faults }) => {
  watch(page, faults);
  const code = /#code=(\S+)/.exec(host.output)?.[1];
  test.skip(code === undefined, "another test of this worker has used the link");
  host.output = host.output.replace(/#code=\S+/, "");
  await page.goto(`${host.console}#code=${code}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Runs");
  expect(page.url()).toBe(host.console);
  await page.context().clearCookies();
  await page.goto(`${host.console}#code=${code}`);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Sign in to Waybill");
  expect(faults).toEqual([]);
});

test("C1c the cookie is out of reach of scripts and other sites, and a write needs the console's header", async ({ signedIn: page, host }) => {
  const cookie = (await page.context().cookies()).find((c) => c.httpOnly);
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  await page.goto(host.console);
  const write = (headers: Record<string, string>): Promise<number> =>
    page.evaluate(
      async ([url, h]) => (await fetch(url as string, { method: "POST", headers: { "Content-Type": "application/json", ...(h as object) }, body: '{"workflowId":"steps"}' })).status,
      [`${host.url}/v1/runs`, headers] as const,
    );
  expect(await write({})).toBe(403);
  expect(await write({ "X-Waybill-Console": "1" })).toBe(201);
});

test("C1c signing out ends the session", async ({ signedIn: page, host }) => {
  await page.goto(host.console);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Sign in to Waybill");
  expect((await page.request.get(`${host.url}/v1/runs`)).status()).toBe(401);
});

test("C1b a session that the host no longer knows leads to the sign-in page, also where a run is only watched", async ({ page, basePath, context }) => {
  test.setTimeout(60_000);
  await withMortal(page, basePath, "", async (host) => {
    await context.clearCookies();
    await host.kill();
    await host.start(); // the stream is asked for again, and refused
    await expect(page.getByRole("heading", { name: "Sign in to Waybill" })).toBeVisible({ timeout: 20_000 });
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByText("A person has to decide at gate.")).toBeVisible();
    await expect(page.getByText("Live", { exact: true })).toBeVisible();
  });
});

test("C1c signing out in one tab clears the other tabs", async ({ signedIn: page, host, context }) => {
  const other = await context.newPage();
  await other.goto(`${host.console}capabilities`);
  await expect(other.getByRole("heading", { name: "Envelope kinds" })).toBeVisible();
  await page.goto(host.console);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(other.getByRole("heading", { name: "Sign in to Waybill" })).toBeVisible();
});

test("C1b a key that may only look sees runs", async ({ page, host }) => {
  await page.goto(host.console);
  await page.getByLabel("API key").fill(readKey);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Runs");
});
