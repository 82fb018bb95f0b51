import { expect, test } from "./fixtures";
import { expectAccessibleInBothThemes } from "./themes";

const sizes = [
  { width: 320, height: 640 },
  { width: 1280, height: 800 },
];

// The pages of runs; other pages have separate tests.
const routes = ["", "?filter=status:failed", "?filter=workflow:nobody", "runs/RUN", "runs/RUN?view=table&e=2", "runs/RUN?view=data", "runs/RUN?view=cost", "runs/FAILED", "runs/no-such-run", "nowhere"];

for (const size of sizes) {
  test(`C10a every route is accessible in both themes: ${size.width} px`, async ({ signedIn: page, host }) => {
    test.setTimeout(90_000);
    await page.setViewportSize(size);
    const run = await host.runUntil("triage", ["completed"], { inputs: { mail: "hello" }, tags: ["a-tag"] });
    const failed = await host.runUntil("fail", ["failed"]);
    for (const route of routes) {
      await test.step(route || "/", async () => {
        await page.goto(host.console + route.replace("RUN", run).replace("FAILED", failed));
        await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
        await expect(page.locator(".loading")).toHaveCount(0);
        await expectAccessibleInBothThemes(page);
        const [wide, title, heading] = await page.evaluate(() => [
          document.documentElement.scrollWidth > document.documentElement.clientWidth,
          document.title,
          document.querySelector("h1")?.textContent ?? "",
        ]);
        expect.soft(wide, "scrolls sideways").toBe(false);
        const beyond = await page.locator("nav a").evaluateAll((links) => links.filter((link) => link.getBoundingClientRect().right > innerWidth).map((link) => link.textContent));
        expect.soft(beyond, "ways that are out of sight").toEqual([]);
        expect.soft(title).toContain(heading);
      });
    }
  });
}

test("C10b a failed run is found, opened and copied from by the keyboard alone", async ({ signedIn: page, host, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const failed = await host.runUntil("fail", ["failed"]);
  await page.goto(host.console);
  await expect(page.getByRole("row").nth(1)).toBeVisible();
  await page.keyboard.press("/");
  await expect(page.getByRole("searchbox")).toBeFocused();
  await page.keyboard.type("status:failed");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("list", { name: "Conditions" })).toBeVisible();
  await expect(page.locator(`a[href$="${failed}"]`)).toBeVisible(); // of the list that fits the filter
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await page.keyboard.press("j");
  await expect(page.locator(`a[href$="${failed}"]`)).toBeFocused();
  const outline = await page.locator(":focus").evaluate((e) => getComputedStyle(e).outlineStyle);
  expect(outline).not.toBe("none");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("fail");
  await expect(page.locator("#main")).toBeFocused();
  await page.keyboard.press("t");
  await expect(page.getByRole("table", { name: "Events" })).toBeVisible();
  await page.keyboard.press("j");
  await expect(page.getByRole("heading", { level: 2 })).toContainText("#0");
  await page.keyboard.press(".");
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await expect(dialog).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(dialog).toBeHidden();
});

test("C10b the first stop of the tab key skips to the content", async ({ signedIn: page, host }) => {
  await page.goto(host.console);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to the content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
});

test("C10b single keys can be turned off", async ({ signedIn: page, host }) => {
  await page.goto(host.console);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("checkbox", { name: /^Single-key/ }).uncheck();
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  await expect(page.getByRole("searchbox")).not.toBeFocused();
});

test("C10c a status is a word and an icon as well as a colour", async ({ signedIn: page, host }) => {
  await host.runUntil("fail", ["failed"]);
  await page.goto(host.console);
  const chip = page.locator(".status", { hasText: "Failed" }).first();
  await expect(chip).toHaveText("Failed");
  await expect(chip.locator("svg")).toHaveCount(1);
});

test("C10d nothing moves when less motion is wanted, and bars stay when colours are forced", async ({ signedIn: page, host }) => {
  const run = await host.runUntil("steps", ["completed"]);
  await page.emulateMedia({ reducedMotion: "reduce", forcedColors: "active" });
  await page.goto(`${host.console}runs/${run}`);
  const bar = page.getByRole("gridcell", { name: /^first: completed/ });
  await expect(bar).toBeVisible();
  expect(await page.evaluate(() => document.getAnimations().length)).toBe(0);
  expect(await bar.evaluate((e) => getComputedStyle(e).outlineStyle)).toBe("solid");
  await bar.focus();
  expect((await bar.boundingBox())?.width).toBeGreaterThanOrEqual(6);
});

test("C10 a chosen theme is kept and does not flash", async ({ signedIn: page, host }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(host.console);
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("combobox", { name: "Theme" }).selectOption("dark");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.reload({ waitUntil: "commit" });
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});
