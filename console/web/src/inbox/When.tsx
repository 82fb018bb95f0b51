import type { ReactNode } from "react";
import { ago, dateTime, dayTime, duration, useNow } from "../ui/time";

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

const hour = 3_600_000;

/** Shows a deadline: its day and time, and how far away it is. */
export function Due({ at }: { at: string }): ReactNode {
  const left = Date.parse(at) - useNow();
  if (!Number.isFinite(left)) return <span>due {at}</span>;
  const look = left < 0 ? "due bad" : left < hour ? "due ask" : "due";
  return (
    <time dateTime={at} title={`${dateTime(at)} (${at})`} className={look}>
      {left < 0 ? `overdue since ${dayTime(at)}` : `due ${dayTime(at)} (in ${left < hour ? duration(left) : ago(left).replace(/ ago$/, "")})`}
    </time>
  );
}
