import type { ReactNode } from "react";
import type { RunSnapshot } from "../../api/model";
import { isTerminal } from "../../api/model";
import type { RunView } from "../../ladder/model";
import { Name } from "../../ui/Text";
import { duration, useNow } from "../../ui/time";
import { count, money } from "./usage";

/** The figures of a run: time, model calls, tokens, cost, retries and waiting. */
export function Metrics({ snapshot, view }: { snapshot: RunSnapshot | undefined; view: RunView | null | undefined }): ReactNode {
  const total = view?.cost.total;
  const figures: [string, ReactNode][] = [
    ["Duration", snapshot ? <Took key="t" snapshot={snapshot} /> : "–"],
    ["Waiting", view ? <Waited key="w" view={view} /> : "–"],
    ["Model calls", total ? String(total.calls) : "–"],
    ["Tokens in", total ? count(total.inputTokens) : "–"],
    ["Tokens out", total ? count(total.outputTokens) : "–"],
    ["Cost (estimate)", total ? <Name key="c" text={money(total.cost, total.currency)} /> : "–"],
    ["Retries", view ? String(view.timeline.retries ?? 0) : "–"],
  ];
  return (
    <dl className="metrics" aria-label="Figures of the run">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Took({ snapshot }: { snapshot: RunSnapshot }): ReactNode {
  if (!snapshot.startedAt) return "–";
  const from = Date.parse(snapshot.startedAt);
  if (snapshot.completedAt) return duration(Date.parse(snapshot.completedAt) - from);
  return isTerminal(snapshot.status) ? "–" : <Growing from={from} />;
}

function Growing({ from }: { from: number }): ReactNode {
  return <SoFar ms={Math.max(0, useNow() - from)} />;
}

/** The waits of a run after its start, with the one that is open. */
function Waited({ view: { timeline, createdAt } }: { view: RunView }): ReactNode {
  const open = timeline.run.parts.at(-1);
  const waits = timeline.run.parts.length > 1 && open?.kind === "wait" && open.to === undefined;
  return waits ? <Waiting before={timeline.waitedMs} from={Date.parse(createdAt) + open.from} /> : duration(timeline.waitedMs);
}

function Waiting({ before, from }: { before: number; from: number }): ReactNode {
  return <SoFar ms={before + Math.max(0, useNow() - from)} />;
}

function SoFar({ ms }: { ms: number }): ReactNode {
  return (
    <>
      {duration(ms)} <span className="so-far">so far</span>
    </>
  );
}
