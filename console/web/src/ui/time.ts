import { useSyncExternalStore } from "react";
import { escapeHidden } from "./escape";
import { currentZone, type Zone } from "./zone";

/** Formats a duration in its two largest units. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 0) return `−${duration(-ms)}`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${pad(s % 60)} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${pad((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

function pad(n: number): string {
  return String(Math.floor(n)).padStart(2, "0");
}

/** Formats an age in one unit. */
export function ago(ms: number): string {
  const s = Math.max(0, ms) / 1000;
  if (s < 5) return "just now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86_400)} d ago`;
}

type Formats = { day: Intl.DateTimeFormat; clock: Intl.DateTimeFormat; zone: Intl.DateTimeFormat };

function formats(timeZone: string | undefined): Formats {
  return {
    day: new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone }),
    clock: new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false, timeZone }),
    zone: new Intl.DateTimeFormat("en-GB", { timeZoneName: "short", timeZone }),
  };
}

const inZone: { [zone in Zone]: Formats } = { local: formats(undefined), utc: formats("UTC") };

const here = (): Formats => inZone[currentZone()];

/** Formats the time of day with milliseconds. */
export function clock(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : here().clock.format(at);
}

/** Formats date, time and time zone. */
export function dateTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : `${here().day.format(at)}, ${here().clock.format(at).slice(0, 8)} ${zoneName(at)}`;
}

/** Formats date, hour, minute and time zone. */
export function minute(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : `${here().day.format(at)}, ${here().clock.format(at).slice(0, 5)} ${zoneName(at)}`;
}

/** A time at the edge of a chart: without its day if that is today, and without the zone, which the page names. */
export function edgeTime(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.valueOf())) return escapeHidden(iso);
  const time = here().clock.format(at).slice(0, 5);
  return here().day.format(at) === here().day.format(Date.now()) ? time : `${here().day.format(at)}, ${time}`;
}

function zoneName(at: Date): string {
  return here().zone.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
}

/** Formats the time of day, with the day unless it is today. */
export function dayTime(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.valueOf())) return escapeHidden(iso);
  const time = here().clock.format(at);
  const suffix = currentZone() === "utc" ? " UTC" : "";
  const on = here().day.format(at);
  const daysAhead = [-1, 0, 1].find((n) => here().day.format(Date.now() + n * 86_400_000) === on);
  if (daysAhead === 0) return `${time.slice(0, 8)}${suffix}`;
  const name = daysAhead === 1 ? "tomorrow" : daysAhead === -1 ? "yesterday" : on;
  return `${name}, ${time.slice(0, 5)}${suffix}`;
}

// One clock for the page. It ticks every second while a component subscribes.
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    for (const l of listeners) l();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Returns the current time, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
