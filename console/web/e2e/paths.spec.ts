import { expect, test } from "./fixtures";
import { shots } from "./shots";

test("C13 every page opens below a path, and asks for nothing outside it", async ({ signedIn: page, host }) => {
  test.setTimeout(120_000);
  const outside: string[] = [];
  const missing: string[] = [];
  page.on("request", (request) => /^(data|blob|about):/.test(request.url()) || request.url().startsWith(`${host.url}/`) || outside.push(request.url()));
  page.on("response", (answer) => answer.status() === 404 && missing.push(answer.url()));
  for (const { name, path, ready, width } of await shots(host)) {
    await test.step(name, async () => {
      await page.setViewportSize({ width: width ?? 1280, height: 800 });
      await page.goto("about:blank"); // an address that differs behind the # alone loads nothing
      await page.goto(host.console + path);
      await ready(page);
      const links = await page.locator("a[href]").evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href));
      expect.soft(links.filter((href) => href.startsWith(new URL(host.url).origin) && !href.startsWith(`${host.url}/`))).toEqual([]);
    });
  }
  expect(outside).toEqual([]);
  expect(missing).toEqual([]);
});
