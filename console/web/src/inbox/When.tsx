import type { ReactNode } from "react";
import { ago, dateTime, useNow } from "../ui/time";

/** A moment before or after now, in one unit; the moment itself is its title. */
export function When({ at }: { at: string }): ReactNode {
  const past = useNow() - Date.parse(at);
  if (!Number.isFinite(past)) return <span>{at}</span>;
  return (
    <time dateTime={at} title={`${dateTime(at)} (${at})`}>
      {past >= 0 ? ago(past) : past > -5000 ? "now" : `in ${ago(-past).replace(/ ago$/, "")}`}
    </time>
  );
}
