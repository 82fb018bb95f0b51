import type { ReactNode } from "react";
import { ago, dateTime, useNow } from "./time";

/** Shows an age; the title has the exact time. */
export function Ago({ at }: { at: string }): ReactNode {
  const now = useNow();
  return (
    <time dateTime={at} title={`${dateTime(at)} (${at})`}>
      {ago(now - Date.parse(at))}
    </time>
  );
}
