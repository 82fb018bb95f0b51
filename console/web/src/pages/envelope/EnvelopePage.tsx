import { useQuery } from "@tanstack/react-query";
import { useMemo, type ReactNode } from "react";
import { Link, useParams } from "wouter";
import { fetchJson } from "../../api/client";
import type { RunSnapshot } from "../../api/model";
import { useTitle } from "../../ui/title";
import { CopyAs } from "../../copyas/CopyAs";
import { envelopeRequest } from "../../copyas/requests";
import { Explanation } from "../../explain/Explanation";
import { columnsOf, decisive } from "../../ladder/columns";
import { executionsOf } from "../../ladder/fold";
import type { Envelope, Execution } from "../../ladder/model";
import { stoppedAt } from "../../ladder/rungs";
import { callKey, findEnvelope, storyOf, storyOfExecution } from "../../ladder/story";
import { useLadderContext } from "../../ladder/ui/context";
import { Detail } from "../../ladder/ui/Detail";
import { envelopePath, Ladder } from "../../ladder/ui/Ladder";
import { Substitution } from "../../ladder/ui/Substitution";
import { Verdict } from "../../ladder/ui/Verdict";
import { useRunLog } from "../../live/useRunLog";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name } from "../../ui/Text";
import "../../styles/form.css";

export default function EnvelopePage(): ReactNode {
  const { runId = "", envelope: wanted } = useParams<{ runId: string; envelope?: string }>();
  const log = useRunLog(runId);
  // oxlint-disable-next-line react/exhaustive-deps -- the log is one mutable object; its version changes as it grows
  const executions = useMemo(() => executionsOf(log.events), [log, log.version]);
  const { data: snapshot } = useQuery({
    queryKey: ["run", runId, "of-envelope", log.ended],
    queryFn: ({ signal }) => fetchJson<RunSnapshot>(`/v1/runs/${encodeURIComponent(runId)}`, { signal }),
  });
  const found = wanted === undefined ? undefined : findEnvelope(executions, wanted);
  const execution = found?.execution ?? (wanted === undefined ? executions.find((x) => storyOfExecution(x).tone === "bad") ?? executions[0] : undefined);
  const columns = execution ? columnsOf(execution) : [];
  const column = found ? columns.find((c) => (found.envelope ? c.envelope === found.envelope : c.key === callKey(found.execution, found.call))) : execution && decisive(execution, columns);
  const context = useLadderContext(snapshot, execution?.nodeId);
  const name = column?.envelope?.kind ?? stoppedKind(column?.envelope) ?? context.askedKind ?? (execution ? `Answer of ${execution.nodeId}` : "Envelope");
  useTitle(`${name} · ${shortId(runId)}`);
  const read = log.ended || log.state === "live" || log.events.length > 0;
  return (
    <div className="envelope-page">
      <nav aria-label="Breadcrumb" className="crumbs">
        <Link href={`/runs/${encodeURIComponent(runId)}`}><Name text={snapshot?.workflowId ?? "Run"} /> {shortId(runId)}</Link>
        {execution && <span> › <Name text={execution.nodeId} /></span>}
        {execution && execution.number > 1 && <span className="dim">, execution {execution.number}</span>}
      </nav>
      <h1>
        <Name text={name} />
      </h1>
      {log.error && <ErrorNote error={log.error} />}
      {execution && (
        <>
          <Verdict story={storyOfExecution(execution)} />
          <Substitution runId={runId} execution={execution} />
          {execution.insufficient && <Explanation code="capability_not_provided" message={execution.error?.message} />}
          <Ladder runId={runId} execution={execution} chosen={column?.key} attempts={context.attempts} />
          {column && (
            <section aria-labelledby="chosen" className="chosen-column">
              <div className="chosen-head">
                <h2 id="chosen">
                <Name text={column.envelope ? storyOf(column.envelope, column.call).headline : `Attempt ${column.call.attempt}: no document`} />
              </h2>
                <span className="choices">
                  <Link href="/try" className="small">
                    Try another answer
                  </Link>
                  <CopyAs request={envelopeRequest(runId, column.envelope?.envelopeId ?? column.key)} />
                </span>
              </div>
              <Detail runId={runId} execution={execution} column={column} context={context} key={column.key} />
            </section>
          )}
        </>
      )}
      {!execution && read && !log.error && (
        <p className="empty">
          {executions.length === 0 ? "No model has been called in this run yet. Envelopes appear here when a model answers." : "This run has no such envelope."}
        </p>
      )}
      <Others runId={runId} executions={executions.filter((x) => x !== execution)} />
    </div>
  );
}

const stoppedKind = (x: Envelope | undefined): string | undefined => x && stoppedAt(x.rungs)?.refusedKind;

/** Lists the other model calls of the run. */
function Others({ runId, executions }: { runId: string; executions: Execution[] }): ReactNode {
  if (executions.length === 0) return null;
  return (
    <section aria-labelledby="others" className="others">
      <h2 id="others">Other model calls in this run</h2>
      <ul>
        {executions.map((x) => {
          const to = decisive(x, columnsOf(x));
          const story = storyOfExecution(x);
          return (
            <li key={`${x.nodeId} ${x.number}`}>
              {to ? <Link href={envelopePath(runId, to.key)}><Name text={x.nodeId} /></Link> : <span><Name text={x.nodeId} /></span>} <span className={`verdict-word ${story.tone}`}><Name text={story.headline} /></span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
