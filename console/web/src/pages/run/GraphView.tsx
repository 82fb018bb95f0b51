import { useMemo, type ReactNode } from "react";
import { isStatus } from "../../api/errors";
import type { RunEvent, RunSnapshot } from "../../api/model";
import type { RunView } from "../../ladder/model";
import { ErrorNote } from "../../ui/ErrorNote";
import Graph, { type NodeRun } from "../../workflows/Graph";
import { useDefinition, useVersions } from "../../workflows/host";

type Props = {
  snapshot: RunSnapshot;
  /** The snapshot that is shown: of an earlier event, while looking back. */
  shown: RunSnapshot | undefined;
  view: RunView | undefined;
  selected: RunEvent | undefined;
  onSelect: (seq: number) => void;
};

/** The graph of the definition that a run executes, with the states of its nodes. */
export default function GraphView({ snapshot, shown, view, selected, onSelect }: Props): ReactNode {
  const { workflowVersion, workflowDigest } = snapshot.waybill ?? {};
  const definition = useDefinition(snapshot.workflowId, workflowVersion);
  const versions = useVersions(snapshot.workflowId);
  const states = useMemo(() => statesOf(shown), [shown]);
  if (isStatus(definition.error, 404)) return <p className="empty">Version {workflowVersion} of the workflow was deleted, so its graph cannot be drawn. The run keeps its definition.</p>;
  if (definition.error) return <ErrorNote error={definition.error} onRetry={() => void definition.refetch()} />;
  if (!definition.data) return <p className="loading">Loading the definition…</p>;
  const registered = versions.data?.versions.find((v) => v.version === workflowVersion)?.digest;
  const select = (nodeId: string): void => {
    const bar = view?.timeline.lanes.find((lane) => lane.nodeId === nodeId)?.bars.at(-1);
    if (bar) onSelect(bar.sequence);
  };
  return (
    <>
      {registered !== undefined && registered !== workflowDigest && (
        <p className="note ask small">The file of version {workflowVersion} has changed since this run started. The graph shows the changed definition.</p>
      )}
      <Graph definition={definition.data} states={states} selected={selected?.nodeId} onSelect={select} />
    </>
  );
}

function statesOf(snapshot: RunSnapshot | undefined): { [nodeId: string]: NodeRun } {
  const out: { [nodeId: string]: NodeRun } = {};
  for (const [nodeId, state] of Object.entries(snapshot?.nodeStates ?? {})) {
    const attempts = state.attempts ?? 1;
    out[nodeId] = { status: state.status, note: attempts > 1 ? `attempt ${attempts}` : undefined };
  }
  return out;
}
