// Pictures of every page in both themes, for people to look at: pictures/THEME/PAGE.png. What they show is held elsewhere.
import { fileURLToPath } from "node:url";
import { expect, signIn, test } from "./fixtures";
import { key } from "./host";
import { shots } from "./shots";

const folder = fileURLToPath(new URL("../pictures/", import.meta.url));

test("pictures of every page in both themes", async ({ page, host }) => {
  test.setTimeout(180_000);
  const take = async (name: string, width = 1280): Promise<void> => {
    await page.setViewportSize({ width, height: width < 600 ? 700 : 800 });
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
  for (const { name, path, ready, width } of await shots(host)) {
    await page.setViewportSize({ width: width ?? 1280, height: 800 });
    await page.goto("about:blank"); // an address that differs behind the # alone loads nothing
    await page.goto(host.console + path);
    await ready(page);
    await take(name, width);
  }
});
