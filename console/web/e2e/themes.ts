import type { Page } from "@playwright/test";
import { expect, expectAccessible } from "./fixtures";

/** Accessible in both themes. */
export async function expectAccessibleInBothThemes(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: "dark" });
  await expectAccessible(page, "colours");
  await page.emulateMedia({ colorScheme: "light" });
  await expectAccessible(page);
}

/** Accessible in both themes, and no wider than a phone. */
export async function expectAccessibleEverywhere(page: Page): Promise<void> {
  const size = page.viewportSize() ?? { width: 1280, height: 800 };
  await expectAccessibleInBothThemes(page);
  await page.setViewportSize({ width: 320, height: 800 });
  expect.soft(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
  await page.setViewportSize(size);
}
