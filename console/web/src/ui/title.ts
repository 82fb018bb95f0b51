import { useEffect, useSyncExternalStore } from "react";
import { escapeHidden } from "./escape";

/** The open questions that the user may answer: their number, and whether one is due soon. */
export type Waiting = { count: number; soon: boolean; more: boolean };

const none: Waiting = { count: 0, soon: false, more: false };
let page = "";
let waiting = none;
const listeners = new Set<() => void>();

/** The number in words of the page, such as 12 or 2,000+. */
export const waitingText = ({ count, more }: Waiting): string => `${count.toLocaleString("en")}${more ? "+" : ""}`;

function show(): void {
  document.title = `${waiting.count > 0 ? `(${waitingText(waiting)}) ` : ""}${page ? `${escapeHidden(page)} · ` : ""}Waybill`;
}

/** Sets the document title to the page's h1, after the number of open questions. */
export function useTitle(title: string): void {
  useEffect(() => {
    page = title;
    show();
  }, [title]);
}

/** Sets the open questions of the user; undefined means unknown. */
export function setWaiting(next: Waiting = none): void {
  waiting = next;
  show();
  for (const listener of listeners) listener();
}

export function useWaiting(): Waiting {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => waiting,
  );
}
