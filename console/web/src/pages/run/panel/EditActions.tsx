import { Suspense, useState, type ReactNode } from "react";
import { Link } from "wouter";
import { isObject } from "../../../api/json";
import { useMay } from "../../../api/session";
import { conversationsOf } from "../../../fork/messages";
import type { Execution } from "../../../ladder/model";
import { kindOf } from "../../../workflows/definition";
import type { RunLog } from "../../../live/runLog";
import { Icon } from "../../../ui/Icon";
import { loaded } from "../../../ui/load";
import type { Bar, Lane } from "../timeline";

const MessagesDialog = loaded(() => import("../../../fork/MessagesDialog").then((m) => ({ default: m.MessagesDialog })));
const OutputsDialog = loaded(() => import("../../../fork/OutputsDialog").then((m) => ({ default: m.OutputsDialog })));

type Props = { runId: string; lane: Lane; bar: Bar; log: RunLog; execution: Execution | undefined };

/** What a builder may do with a node that has run: try its model call again, or branch with other messages or outputs. */
export function EditActions({ runId, lane, bar, log, execution }: Props): ReactNode {
  const may = useMay("runs:create", "runs:read", "workflows:write");
  const [editing, edit] = useState<"messages" | "outputs">();
  const { nodeId, typeId } = lane;
  if (!may || typeId === undefined) return null;
  const end = bar.ended === undefined ? undefined : log.events[bar.ended];
  const outputs = isObject(end?.payload.outputs) ? end.payload.outputs : {};
  const ended = end?.type === "node.failed" || (end?.type === "node.completed" && Object.keys(outputs).length > 0);
  // People's answers are not edited, nor are variables.
  const editable = ended && kindOf(typeId) !== "gate" && !/^core\.(setVariable|channelWrite)$/.test(typeId);
  const conversations = execution ? conversationsOf(execution, log.events) : [];
  return (
    <>
      {execution && (
        <Link href={`/runs/${encodeURIComponent(runId)}/nodes/${encodeURIComponent(nodeId)}/play`} className="button">
          <Icon name="play" /> Open in the playground
        </Link>
      )}
      {conversations.length > 0 && (
        <button type="button" onClick={() => edit("messages")}>
          <Icon name="fork" /> Edit the messages…
        </button>
      )}
      {editable && (
        <button type="button" onClick={() => edit("outputs")}>
          <Icon name="fork" /> Edit the outputs…
        </button>
      )}
      {editing && (
        <Suspense fallback={null}>
          {editing === "messages" ? (
            <MessagesDialog runId={runId} nodeId={nodeId} conversations={conversations} onClose={() => edit(undefined)} />
          ) : (
            <OutputsDialog runId={runId} nodeId={nodeId} outputs={outputs} onClose={() => edit(undefined)} />
          )}
        </Suspense>
      )}
    </>
  );
}
