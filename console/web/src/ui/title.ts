import { useEffect } from "react";
import { escapeHidden } from "./escape";

/** Sets the document title to the page's h1. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${escapeHidden(title)} · Waybill` : "Waybill";
  }, [title]);
}
