import { useEffect } from "react";
import { escapeHidden } from "./escape";

/** Names the document after the page's one h1. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${escapeHidden(title)} · Waybill` : "Waybill";
  }, [title]);
}
