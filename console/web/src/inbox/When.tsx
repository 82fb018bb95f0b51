import type { ReactNode } from "react";
import { ago, dateTime, useNow } from "../ui/time";

/** Shows the distance to a time in one unit; the title has the exact time. */
export function When({ at }: { at: string }): ReactNode {
  const past = useNow() - Date.parse(at);
  if (!Number.isFinite(past)) return <span>{at}</span>;
  return (
    <time dateTime={at} title={`${dateTime(at)} (${at})`}>
      {past >= 0 ? ago(past) : past > -5000 ? "now" : `in ${ago(-past).replace(/ ago$/, "")}`}
    </time>
  );
}
