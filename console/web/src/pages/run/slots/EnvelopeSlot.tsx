import type { ReactNode } from "react";
import { Link } from "wouter";
import type { RunEvent, RunSnapshot } from "../../../api/model";
import { columnsOf, decisive, type Column } from "../../../ladder/columns";
import { useLadderContext } from "../../../ladder/ui/context";
import { envelopePath, Ladder } from "../../../ladder/ui/Ladder";
import { Substitution } from "../../../ladder/ui/Substitution";
import { Verdict } from "../../../ladder/ui/Verdict";
import type { RunLog } from "../../../live/runLog";
import { useView } from "../../../live/useView";

type Props = { event: RunEvent; log: RunLog; snapshot: RunSnapshot | undefined };

/** Shows the gates of the envelope that an event belongs to. */
export function EnvelopeSlot({ event, log, snapshot }: Props): ReactNode {
  const { data: view } = useView(log, undefined, isAbout(event));
  const execution = view?.answers.find((x) => x.nodeId === (event.nodeId ?? event.payload.nodeId) && x.from <= event.sequence && event.sequence <= x.to);
  const context = useLadderContext(snapshot, execution?.nodeId);
  if (!execution) return null;
  const columns = columnsOf(execution);
  const column = columnOf(columns, event) ?? decisive(execution, columns);
  return (
    <section className="envelope-slot" aria-label="Ladder of the envelope">
      <Verdict story={execution} />
      <Substitution runId={log.runId} execution={execution} />
      <Ladder runId={log.runId} execution={execution} chosen={column?.key} attempts={context.attempts} />
      {column && (
        <p>
          <Link href={envelopePath(log.runId, column.key)}>Open all checks: payload, schema, problems</Link>
        </p>
      )}
    </section>
  );
}

const types = /^(envelope\.|model\.capability\.|provider\.usage$|artifact\.created$|clarification\.requested$|cap\.breached$|node\.(failed|completed)$|output\.chunk$)/;

/** Reports whether an event can belong to a model's answer. */
const isAbout = (e: RunEvent): boolean => types.test(e.type) || e.causationId !== undefined;

function columnOf(columns: Column[], e: RunEvent): Column | undefined {
  return (
    columns.find((c: Column) => c.envelope?.events.some((known) => known.sequence === e.sequence)) ??
    columns.find((c: Column) => c.call.from <= e.sequence && e.sequence <= c.call.to)
  );
}

