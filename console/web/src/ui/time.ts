import { useSyncExternalStore } from "react";
import { escapeHidden } from "./escape";

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

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false });

/** Formats the local time of day with milliseconds. */
export function clock(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : clockFormat.format(at);
}

/** Formats the local date and time. */
export function dateTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : `${day.format(at)}, ${clockFormat.format(at).slice(0, 8)}`;
}

/** Formats the local time of day, with the date unless it is today. */
export function dayTime(iso: string): string {
  const at = new Date(iso);
  return day.format(at.valueOf() || 0) === day.format(Date.now()) ? clock(iso).slice(0, 8) : dateTime(iso);
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
