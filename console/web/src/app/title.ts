import { useEffect } from "react";
import { plain } from "../ui/plain";

/** Names the document after the page's one h1. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${plain(title)} · Waybill` : "Waybill";
  }, [title]);
}
