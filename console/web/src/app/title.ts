import { useEffect } from "react";

/** Names the document after the page's one h1. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · Waybill` : "Waybill";
  }, [title]);
}
