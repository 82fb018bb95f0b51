import { useSyncExternalStore } from "react";
import { escapeHidden } from "./escape";

/** A length of time in the two largest units that say something. */
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

/** How long ago something was, in one unit. */
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

/** The time of day to the millisecond, where this browser is. */
export function clock(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : clockFormat.format(at);
}

/** Day and time, where this browser is. */
export function dateTime(iso: string): string {
  const at = new Date(iso);
  return Number.isNaN(at.valueOf()) ? escapeHidden(iso) : `${day.format(at)}, ${clockFormat.format(at).slice(0, 8)}`;
}

/** The time of day, and the day unless it is today. */
export function dayTime(iso: string): string {
  const at = new Date(iso);
  return day.format(at.valueOf() || 0) === day.format(Date.now()) ? clock(iso).slice(0, 8) : dateTime(iso);
}

// One clock for the page: it ticks each second while somebody looks at something that grows.
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

/** The time, again each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
