import { useEffect, useRef, useSyncExternalStore } from "react";

/** A shortcut: one key or a sequence of two, and its action. No single key changes anything on the host. */
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
    // Without storage, the choice lasts until the page is closed.
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

/** Registers shortcuts while the calling component is mounted. */
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

/** Returns all active shortcuts, for their list. */
export function currentShortcuts(): Shortcut[] {
  return [...groups].flatMap((group) => group.current);
}

// The editor is in a shadow tree, so the target is the innermost element of the path.
function inField(event: Event): boolean {
  const target = event.composedPath()[0];
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable], [role=textbox]") !== null;
}

let first = "";
let firstAt = 0;

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (inField(event)) return;
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
