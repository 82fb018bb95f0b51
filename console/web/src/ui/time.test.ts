import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { dateTime, dayTime, edgeTime, minute } from "./time";
import { setZone } from "./zone";

beforeEach(() => {
  vi.useFakeTimers({ now: new Date("2026-11-27T22:30:00.000Z") });
  setZone("utc");
});
afterEach(() => {
  setZone("local");
  vi.useRealTimers();
});

test("a time has its day unless it is today", () => {
  expect(dayTime("2026-11-27T23:05:09.000Z")).toBe("23:05:09 UTC");
  expect(dayTime("2026-11-28T00:05:09.000Z")).toBe("tomorrow, 00:05 UTC");
  expect(dayTime("2026-11-26T23:59:59.000Z")).toBe("yesterday, 23:59 UTC");
  expect(dayTime("2026-12-24T18:00:00.000Z")).toBe("24 Dec 2026, 18:00 UTC");
  expect(dayTime("soon")).toBe("soon");
});

test("a date and time has its zone", () => {
  expect(dateTime("2026-11-27T23:05:09.120Z")).toBe("27 Nov 2026, 23:05:09 UTC");
  expect(dateTime("")).toBe("");
});

test("the zone of the browser is the default, and is named", () => {
  setZone("local");
  const zone = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(new Date()).find((p) => p.type === "timeZoneName")?.value;
  expect(dateTime("2026-11-27T12:05:09.000Z")).toMatch(new RegExp(`^2[678] Nov 2026, \\d\\d:05:09 ${zone?.replace("+", "\\+")}$`));
  expect(dayTime("2026-12-24T18:00:00.000Z")).not.toContain("UTC");
});

test("a minute has its date and zone, and no seconds", () => {
  expect(minute("2026-11-27T23:05:09.120Z")).toBe("27 Nov 2026, 23:05 UTC");
  expect(minute("soon")).toBe("soon");
});

test("a minute in a zone that has an offset for a name", async () => {
  vi.stubEnv("TZ", "Etc/GMT-1");
  vi.resetModules();
  try {
    const local = await import("./time");
    (await import("./zone")).setZone("local");
    expect(local.minute("2026-11-27T23:05:09.120Z")).toBe("28 Nov 2026, 00:05 GMT+1");
    expect(local.dateTime("2026-11-27T23:05:09.120Z")).toBe("28 Nov 2026, 00:05:09 GMT+1");
  } finally {
    vi.unstubAllEnvs();
  }
});

test("the edge of a chart has its day unless that is today, and no zone", () => {
  expect(edgeTime("2026-11-27T19:20:00.000Z")).toBe("19:20");
  expect(edgeTime("2024-11-27T23:05:09.120Z")).toBe("27 Nov 2024, 23:05");
  expect(edgeTime("soon")).toBe("soon");
});
