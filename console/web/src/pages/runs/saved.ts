// Named filters, stored in this browser.
import { consolePath } from "../../api/base";

export type Saved = { name: string; filter: string };

// Hosts with different paths on one origin have separate filters.
const key = `waybill.filters ${consolePath}`;
export const maxSaved = 20;

export function readSaved(stored: string | null): Saved[] {
  try {
    const all: unknown = JSON.parse(stored ?? "[]");
    return Array.isArray(all) ? all.filter(isSaved).slice(0, maxSaved) : [];
  } catch {
    return [];
  }
}

const isSaved = (s: unknown): s is Saved => typeof s === "object" && s !== null && typeof (s as Saved).name === "string" && typeof (s as Saved).filter === "string";

/** Names and filters are unique; the last one wins. */
export const withSaved = (all: readonly Saved[], one: Saved): Saved[] => [...all.filter((s) => s.name !== one.name && s.filter !== one.filter), one].slice(-maxSaved);

export function load(): Saved[] {
  try {
    return readSaved(localStorage.getItem(key));
  } catch {
    return []; // no storage
  }
}

export function store(all: readonly Saved[]): void {
  try {
    localStorage.setItem(key, JSON.stringify(all));
  } catch {
    // Without storage, filters last until the page is closed.
  }
}
