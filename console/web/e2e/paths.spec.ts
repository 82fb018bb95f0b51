import { fileURLToPath } from "node:url";
import { expect, signIn, test, watch } from "./fixtures";
import { key } from "./host";
import { shots } from "./shots";

// Pictures of every page in both themes, for people to look at: pictures/THEME/PAGE.png. What they show is held elsewhere.
const folder = fileURLToPath(new URL("../pictures/", import.meta.url));

test("C13 every page opens below a path, and asks for nothing outside it", async ({ page, host, faults }) => {
  test.setTimeout(480_000);
  const outside: string[] = [];
  const missing: string[] = [];
  watch(page, faults);
  page.on("request", (request) => /^(data|blob|about):/.test(request.url()) || request.url().startsWith(`${host.url}/`) || outside.push(request.url()));
  page.on("response", (answer) => answer.status() === 404 && !answer.url().includes("/no-such-run") && missing.push(answer.url()));
  const take = async (name: string): Promise<void> => {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const png = await page.screenshot({ path: `${folder}${colorScheme}/${name}.png`, fullPage: true, animations: "disabled" });
      expect(png.length).toBeGreaterThan(5000);
    }
  };
  await page.goto(host.console);
  await page.getByRole("heading", { level: 1, name: "Sign in to Waybill" }).waitFor();
  await take("sign-in");
  await signIn(page, host, key);
  for (const { name, path, ready, width = 1280 } of await shots(host)) {
    await test.step(name, async () => {
      await page.setViewportSize({ width, height: width < 600 ? 700 : 800 });
      await page.goto("about:blank"); // an address that differs behind the # alone loads nothing
      await page.goto(host.console + path);
      await ready(page);
      const links = await page.locator("a[href]").evaluateAll((all) => all.map((a) => (a as HTMLAnchorElement).href));
      expect.soft(links.filter((href) => href.startsWith(new URL(host.url).origin) && !href.startsWith(`${host.url}/`))).toEqual([]);
      await take(name);
    });
  }
  expect(outside).toEqual([]);
  expect(missing).toEqual([]);
  expect(faults).toEqual([]);
});
