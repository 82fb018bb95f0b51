import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useParams } from "wouter";
import { fetchJson } from "../../api/client";
import type { RunSnapshot } from "../../api/model";
import { useTitle } from "../../ui/title";
import { CopyAs } from "../../copyas/CopyAs";
import { envelopeRequest } from "../../copyas/requests";
import { Explanation } from "../../explain/Explanation";
import { columnsOf, decisive, findColumn } from "../../ladder/columns";
import type { Envelope, Execution } from "../../ladder/model";
import { stoppedAt } from "../../ladder/rungs";
import { useLadderContext } from "../../ladder/ui/context";
import { Detail } from "../../ladder/ui/Detail";
import { envelopePath, Ladder } from "../../ladder/ui/Ladder";
import { Substitution } from "../../ladder/ui/Substitution";
import { Verdict } from "../../ladder/ui/Verdict";
import { useIsRecorded, useRunLog } from "../../live/useRunLog";
import { useView, Viewed } from "../../live/useView";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name } from "../../ui/Text";
import { RunTabs } from "../run/RunTabs";
import "../../styles/form.css";

export default function EnvelopePage(): ReactNode {
  const { runId = "", envelope: wanted } = useParams<{ runId: string; envelope?: string }>();
  const log = useRunLog(runId);
  const view = useView(log);
  const executions = view.data?.answers ?? [];
  const { data: snapshot } = useQuery({
    queryKey: ["run", runId, "of-envelope", log.ended],
    queryFn: ({ signal }) => fetchJson<RunSnapshot>(`/v1/runs/${encodeURIComponent(runId)}`, { signal }),
  });
  const found = wanted === undefined ? undefined : findColumn(executions, wanted);
  const execution = found?.execution ?? (wanted === undefined ? executions.find((x) => x.tone === "bad") ?? executions[0] : undefined);
  const column = found?.column ?? (execution && decisive(execution, columnsOf(execution)));
  const context = useLadderContext(snapshot, execution?.nodeId);
  const name = column?.envelope?.kind ?? stoppedKind(column?.envelope) ?? context.askedKind ?? (execution ? `Answer of ${execution.nodeId}` : "Envelope");
  useTitle(`${name} · ${shortId(runId)}`);
  const recorded = useIsRecorded();
  return (
    <div className="envelope-page">
      <nav aria-label="Breadcrumb" className="crumbs">
        <Link href={`/runs/${encodeURIComponent(runId)}`}><Name text={snapshot?.workflowId ?? "Run"} /> {shortId(runId)}</Link>
        {execution && <span> › <Name text={execution.nodeId} /></span>}
        {execution && execution.execution > 1 && <span className="dim">, execution {execution.execution}</span>}
      </nav>
      <h1>
        <Name text={name} />
      </h1>
      <RunTabs runId={runId} current="answers" events={log.events.length} drawable={!recorded && snapshot?.waybill?.workflowVersion !== undefined} />
      {log.error && <ErrorNote error={log.error} />}
      {execution && (
        <>
          <Verdict story={execution} />
          <Substitution runId={runId} execution={execution} />
          {execution.insufficient && <Explanation code="capability_not_provided" message={execution.error?.message} />}
          <Ladder runId={runId} execution={execution} chosen={column?.key} attempts={context.attempts} />
          {column && (
            <section aria-labelledby="chosen" className="chosen-column">
              <div className="chosen-head">
                <h2 id="chosen">
                <Name text={column.envelope?.headline ?? `Attempt ${column.call.attempt}: no document`} />
              </h2>
                <span className="choices">
                  <Link href="/try" className="small">
                    Try another answer
                  </Link>
                  <CopyAs request={envelopeRequest(runId, column.envelope?.envelopeId ?? column.key)} />
                </span>
              </div>
              <Detail log={log} execution={execution} column={column} context={context} key={column.key} />
            </section>
          )}
        </>
      )}
      {!execution && !log.error && (
        <Viewed query={view}>
          {() => (
            <p className="empty">
              {executions.length === 0 ? "No model has been called in this run yet. Envelopes appear here when a model answers." : "This run has no such envelope."}
            </p>
          )}
        </Viewed>
      )}
      <Others runId={runId} executions={executions.filter((x) => x !== execution)} />
    </div>
  );
}

const stoppedKind = (x: Envelope | undefined): string | undefined => x && stoppedAt(x.gates)?.refusedKind;

/** Lists the other model calls of the run. */
function Others({ runId, executions }: { runId: string; executions: Execution[] }): ReactNode {
  if (executions.length === 0) return null;
  return (
    <section aria-labelledby="others" className="others">
      <h2 id="others">Other model calls in this run</h2>
      <ul>
        {executions.map((x) => {
          const to = decisive(x, columnsOf(x));
          return (
            <li key={`${x.nodeId} ${x.execution}`}>
              {to ? <Link href={envelopePath(runId, to.key)}><Name text={x.nodeId} /></Link> : <span><Name text={x.nodeId} /></span>} <span className={`verdict-word ${x.tone}`}><Name text={x.headline} /></span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
