import { useState } from "react";
import type { Entries } from "./form";
import type { FormState } from "./SchemaFields";

type Form = Pick<FormState, "entries" | "change" | "replace"> & { reset: (next: Entries) => void };

/** The entries of a form. If the first entries change, because they were loaded, the form begins again. */
export function useEntries(first: Entries): Form {
  const [state, set] = useState({ first, entries: first });
  if (state.first !== first) set({ first, entries: first });
  const update = (next: (now: Entries) => Entries): void => set((s) => ({ first: s.first, entries: next(s.entries) }));
  return {
    entries: state.entries,
    change: (path, entry) => update((now) => ({ ...now, [path]: entry })),
    replace: (path, next) => update((now) => ({ ...Object.fromEntries(Object.entries(now).filter(([p]) => p !== path && !p.startsWith(`${path}/`))), ...next })),
    reset: (next) => update(() => next),
  };
}
