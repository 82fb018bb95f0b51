import { Suspense, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { isObject } from "../../../api/json";
import { useMay } from "../../../api/session";
import { kindOf } from "../../../workflows/definition";
import type { RunLog } from "../../../live/runLog";
import { Icon } from "../../../ui/Icon";
import { loaded } from "../../../ui/load";
import type { Bar, Lane } from "../timeline";

const OutputsDialog = loaded(() => import("../../../fork/OutputsDialog").then((m) => ({ default: m.OutputsDialog })));

/** What a builder may do with a node that has run: try its model call again, or go on with other outputs. */
export function EditActions({ runId, lane, bar, log, asksModel }: { runId: string; lane: Lane; bar: Bar; log: RunLog; asksModel: boolean }): ReactNode {
  const may = useMay("runs:create", "runs:read", "workflows:write");
  const [editing, edit] = useState(false);
  const { nodeId, typeId } = lane;
  if (!may || typeId === undefined) return null;
  const end = bar.ended === undefined ? undefined : log.events[bar.ended];
  const outputs = isObject(end?.payload.outputs) ? end.payload.outputs : {};
  const ended = end?.type === "node.failed" || (end?.type === "node.completed" && Object.keys(outputs).length > 0);
  // People's answers are not edited, nor are variables.
  const editable = ended && kindOf(typeId) !== "gate" && !/^core\.(setVariable|channelWrite)$/.test(typeId);
  return (
    <>
      {asksModel && (
        <Link href={`/runs/${encodeURIComponent(runId)}/nodes/${encodeURIComponent(nodeId)}/play`} className="button">
          <Icon name="play" /> Open in the playground
        </Link>
      )}
      {editable && (
        <button type="button" onClick={() => edit(true)}>
          <Icon name="fork" /> Edit the outputs…
        </button>
      )}
      {editing && (
        <Suspense fallback={null}>
          <OutputsDialog runId={runId} nodeId={nodeId} outputs={outputs} onClose={() => edit(false)} />
        </Suspense>
      )}
    </>
  );
}
