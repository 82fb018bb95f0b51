import type { ReactNode } from "react";
import { Link } from "wouter";

export const views = [
  { name: "timeline", word: "Timeline" },
  { name: "graph", word: "Graph" },
  { name: "table", word: "Events" },
  { name: "data", word: "Data" },
  { name: "cost", word: "Tokens and cost" },
] as const;
export type View = (typeof views)[number]["name"];

export type Place = { view?: View; e?: number | undefined; at?: number | undefined };

/** The address of a view of a run, of an event, and of the event up to which the run is shown. */
export function address(runId: string, { view, e, at }: Place): string {
  const params = new URLSearchParams();
  if (view) params.set("view", view);
  if (e !== undefined) params.set("e", String(e));
  if (at !== undefined) params.set("at", String(at));
  const query = params.toString();
  return `/runs/${encodeURIComponent(runId)}${query ? `?${query}` : ""}`;
}

type Props = { runId: string; current: View | "answers"; events: number; drawable: boolean; e?: number | undefined; at?: number | undefined };

/** The views of a run. Answers is a page of its own, with the same tabs. */
export function RunTabs({ runId, current, events, drawable, e, at }: Props): ReactNode {
  return (
    <nav className="tabs" aria-label="Views of this run">
      {views.filter(({ name }) => name !== "graph" || drawable).map(({ name, word }) => (
        <Link key={name} href={address(runId, { view: name, e, at })} aria-current={current === name ? "page" : undefined} replace={current !== "answers"}>
          {word}
          {name === "table" && <span className="dim"> {events.toLocaleString("en")}</span>}
        </Link>
      ))}
      <Link href={`/runs/${encodeURIComponent(runId)}/envelopes`} aria-current={current === "answers" ? "page" : undefined}>
        Answers
      </Link>
    </nav>
  );
}
