import type { ReactNode } from "react";
import { ago, dateTime, useNow } from "./time";

/** How long ago something was; the moment itself is its title. */
export function Ago({ at }: { at: string }): ReactNode {
  const now = useNow();
  return (
    <time dateTime={at} title={`${dateTime(at)} (${at})`}>
      {ago(now - Date.parse(at))}
    </time>
  );
}
