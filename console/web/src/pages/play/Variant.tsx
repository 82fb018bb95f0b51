import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import type { Json } from "../../api/json";
import { isTerminal, type RunRow } from "../../api/model";
import { columnsOf, decisive } from "../../ladder/columns";
import type { Execution } from "../../ladder/model";
import { Ladder } from "../../ladder/ui/Ladder";
import { Verdict } from "../../ladder/ui/Verdict";
import { figuresOf } from "../../play/figures";
import { executionIn, useNodeInput, type NodeInput, type Try } from "../../play/host";
import { changes } from "../../ui/changes";
import { Changes } from "../../ui/Changes";
import { JsonView } from "../../ui/JsonView";
import { shortId } from "../../ui/Id";
import { Status } from "../../ui/Status";
import { Name } from "../../ui/Text";
import { duration } from "../../ui/time";
import { count, money } from "../run/usage";

type Source = { runId: string; execution: Execution };
type Props = { title: string; nodeId: string; recorded: NodeInput; rows: readonly RunRow[]; ended: ReadonlyMap<string, Try>; source?: Source };

/** One way to ask: what it changes, its figures, and each of its answers with the checks. */
export function Variant({ title, nodeId, recorded, rows, ended, source }: Props): ReactNode {
  const executions = source ? [source.execution] : rows.flatMap((r) => executionIn(ended.get(r.runId)?.view, nodeId) ?? []);
  const f = figuresOf(executions);
  // A run that failed before its call has no execution.
  const tried = source ? f.ended : rows.filter((r) => isTerminal(r.status)).length;
  const running = rows.length - tried;
  const figures: [string, string][] = [
    ["Passed", `${f.passed} of ${tried}${!source && running > 0 ? `, ${running} running` : ""}`],
    ["Model", f.models.join(", ") || "–"],
    ["Tokens in", count(f.inputTokens)],
    ["Tokens out", count(f.outputTokens)],
    ["Cost", money(f.cost, f.currency)],
    ["Time", f.tookMs === undefined ? "–" : duration(f.tookMs)],
  ];
  return (
    <article className="variant card" aria-label={title}>
      <h2>{title}</h2>
      <dl className="variant-figures">
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Name text={value} />
            </dd>
          </div>
        ))}
      </dl>
      {f.ended > 1 && <p className="small dim">Tokens and cost are means, the time is the median.</p>}
      {rows[0] && <Changed runId={rows[0].runId} nodeId={nodeId} recorded={recorded} />}
      {source && <Answer runId={source.runId} execution={source.execution} output={undefined} />}
      <ol className="tries">
        {rows.map((row) => (
          <li key={row.runId}>
            <Tried row={row} nodeId={nodeId} found={ended.get(row.runId)} single={rows.length === 1} />
          </li>
        ))}
      </ol>
    </article>
  );
}

/** What a variant changes of the recorded call. */
function Changed({ runId, nodeId, recorded }: { runId: string; nodeId: string; recorded: NodeInput }): ReactNode {
  const { data } = useNodeInput(runId, nodeId);
  if (!data) return null;
  const list = [...changes(recorded.config, data.config), ...changes(recorded.inputs, data.inputs)];
  return (
    <details className="variant-changes">
      <summary>{list.length === 0 ? "No changes: the same call again" : list.length === 1 ? `1 change: ${list[0]?.pointer.slice(1)}` : `${list.length} changes: ${list.map((c) => c.pointer.slice(1)).join(", ")}`}</summary>
      <Changes list={list} names={["recorded", "tried"]} same="The settings and inputs are those of the recorded call." />
    </details>
  );
}

function Tried({ row, nodeId, found, single }: { row: RunRow; nodeId: string; found: Try | undefined; single: boolean }): ReactNode {
  const execution = executionIn(found?.view, nodeId);
  if (!isTerminal(row.status) || !execution) {
    return (
      <p className="try-line">
        <Status status={row.status} stalled={row.stalled} /> {row.errorCode && <code className="bad-text"><Name text={row.errorCode} /></code>} <RunLink runId={row.runId} />
      </p>
    );
  }
  return <Answer runId={row.runId} execution={execution} output={found?.snapshot?.nodeStates?.[nodeId]?.outputs} open={single} />;
}

function Answer({ runId, execution, output, open }: { runId: string; execution: Execution; output: Json | undefined; open?: boolean }): ReactNode {
  const [shown, show] = useState(open ?? false);
  const columns = columnsOf(execution);
  const checked = columns.some((c) => c.envelope !== undefined || c.call.failure);
  return (
    <details className="try" open={shown} onToggle={(e) => show(e.currentTarget.open)}>
      <summary>
        <Verdict story={execution} />
      </summary>
      {shown && (
        <div className="try-body">
          {checked && <Ladder runId={runId} execution={execution} chosen={decisive(execution, columns)?.key} attempts={undefined} about={` in run ${shortId(runId)}`} />}
          {output !== undefined && <JsonView value={output} open={3} />}
          <p className="small">
            <RunLink runId={runId} />
          </p>
        </div>
      )}
    </details>
  );
}

function RunLink({ runId }: { runId: string }): ReactNode {
  return (
    <Link href={`/runs/${encodeURIComponent(runId)}`} className="small">
      Open {shortId(runId)}
    </Link>
  );
}
