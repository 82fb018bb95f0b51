import { useSyncExternalStore } from "react";

/** The time zone of all times on the pages: that of the browser, or UTC. */
export type Zone = "local" | "utc";

const storage = "waybill.zone";
const listeners = new Set<() => void>();

function stored(): Zone {
  try {
    return localStorage.getItem(storage) === "utc" ? "utc" : "local";
  } catch {
    return "local";
  }
}

let zone = stored();

export const currentZone = (): Zone => zone;

export function setZone(next: Zone): void {
  zone = next;
  try {
    localStorage.setItem(storage, next);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
  for (const listener of listeners) listener();
}

export function useZone(): Zone {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => zone,
  );
}
