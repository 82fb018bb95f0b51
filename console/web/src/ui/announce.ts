import { useSyncExternalStore } from "react";
import { escapeHidden } from "./escape";

// Announcements for screen readers: at most one every five seconds; the latest one wins.
const interval = 5000;

let shown = "";
let waiting: string | undefined;
let last = Number.NEGATIVE_INFINITY;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function show(text: string): void {
  shown = text;
  last = performance.now();
  for (const listener of listeners) listener();
}

/** Announces a message in a polite live region. */
export function announce(said: string): void {
  const text = escapeHidden(said);
  const wait = last + interval - performance.now();
  if (wait <= 0) {
    show(text);
    return;
  }
  waiting = text;
  timer ??= setTimeout(() => {
    timer = undefined;
    if (waiting !== undefined) show(waiting);
    waiting = undefined;
  }, wait);
}

export function useAnnouncement(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
}
