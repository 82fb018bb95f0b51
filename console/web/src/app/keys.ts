import { useEffect, useRef, useSyncExternalStore } from "react";

/** A key, or two after each other, and what it does. No single key changes anything on the host. */
export type Shortcut = { keys: string; does: string; run: () => void };

const groups = new Set<{ current: readonly Shortcut[] }>();
const storage = "waybill.keys";
let enabled = localStorageGet() !== "off";
const listeners = new Set<() => void>();

function localStorageGet(): string | null {
  try {
    return localStorage.getItem(storage);
  } catch {
    return null;
  }
}

export function setKeysEnabled(on: boolean): void {
  enabled = on;
  try {
    localStorage.setItem(storage, on ? "on" : "off");
  } catch {
    // no storage: the choice lasts as long as the page
  }
  for (const listener of listeners) listener();
}

export function useKeysEnabled(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => enabled,
  );
}

/** Adds shortcuts while the calling component is there. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const group = useRef(shortcuts);
  useEffect(() => {
    group.current = shortcuts;
  });
  useEffect(() => {
    groups.add(group);
    return () => {
      groups.delete(group);
    };
  }, []);
}

/** All shortcuts that are good now, for the list of them. */
export function currentShortcuts(): Shortcut[] {
  return [...groups].flatMap((group) => group.current);
}

function inField(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable], [role=textbox]") !== null;
}

let first = "";
let firstAt = 0;

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (inField(event.target)) return;
  if (!enabled && event.key !== "?") return;
  if (document.querySelector("dialog[open]")) return;
  const pair = first && event.timeStamp - firstAt < 1500 ? `${first} ${event.key}` : "";
  const all = currentShortcuts();
  const hit = (pair && all.find((s) => s.keys === pair)) || all.find((s) => s.keys === event.key);
  first = "";
  if (hit) {
    event.preventDefault();
    hit.run();
  } else if (all.some((s) => s.keys.startsWith(`${event.key} `))) {
    first = event.key;
    firstAt = event.timeStamp;
  }
}

export function listenForKeys(): void {
  document.addEventListener("keydown", onKey);
}
