import { useEffect, useRef } from "react";

/** Moves focus to a heading when something was opened, and back when it is closed. Not on page load. */
export function useFocusAndReturn(opened = true): { current: HTMLHeadingElement | null } {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    const from = document.activeElement;
    if (!opened || !(from instanceof HTMLElement) || from === document.body || from.id === "main") return undefined;
    heading.current?.focus({ preventScroll: true });
    const seq = from.closest<HTMLElement>("[data-seq]")?.dataset.seq;
    return () => {
      const back = from.isConnected ? from : document.querySelector<HTMLElement>(`[data-seq="${seq ?? ""}"] button`);
      (back ?? document.getElementById("main"))?.focus({ preventScroll: true });
    };
  }, [opened]);
  return heading;
}
