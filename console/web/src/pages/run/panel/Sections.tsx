import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { api, bodyAs } from "../../../api/client";
import { stringifyJson, type Json } from "../../../api/json";
import { record, text } from "../../../ladder/events";
import type { RunLog } from "../../../live/runLog";
import { useIsRecorded } from "../../../live/useRunLog";
import { CopyButton } from "../../../ui/CopyButton";
import { JsonView } from "../../../ui/JsonView";
import { countRedactions, Name, Redacted, Text } from "../../../ui/Text";
import { dateTime } from "../../../ui/time";
import type { Bar, Lane } from "../timeline";

type NodeInput = { inputs: { [port: string]: Json }; untrusted: string[]; config?: Json; request?: Json; error?: { code: string; message: string } };

/** What the node was given and what it returned. */
export function InputsAndOutputs({ lane, bar, log }: { lane: Lane; bar: Bar | undefined; log: RunLog }): ReactNode {
  const recorded = useIsRecorded();
  const started = bar !== undefined && lane.typeId !== undefined && !recorded;
  const { data: given } = useQuery({
    queryKey: ["input", log.runId, lane.nodeId, bar?.sequence],
    queryFn: ({ signal }) =>
      bodyAs<NodeInput>(api.GET("/v1/runs/{runId}/nodes/{nodeId}/input", { params: { path: { runId: log.runId, nodeId: lane.nodeId }, query: { at: bar?.sequence ?? 0 } }, signal })),
    enabled: started,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false, // a run that another program executed has no definition here
  });
  const ended = bar?.ended === undefined ? undefined : record(log.events[bar.ended]?.payload);
  const error = record(ended?.error ?? ended?.lastError);
  return (
    <>
      {given?.request !== undefined && <Part name="Request" value={given.request} open />}
      {ended?.outputs !== undefined && <Part name="Outputs" value={ended.outputs as Json} open />}
      {text(error.code) && (
        <section aria-label="Error" className="panel-part">
          <h3>Error</h3>
          <p>
            <code><Name text={text(error.code) ?? ""} /></code> <Text text={text(error.message) ?? ""} />
          </p>
        </section>
      )}
      {given && Object.keys(given.inputs).length > 0 && <Part name="Inputs" value={given.inputs} open note={given.untrusted.length > 0 ? `untrusted: ${given.untrusted.join(", ")}` : undefined} />}
      {given?.error && <p className="small dim"><Name text={given.error.message} /></p>}
      {given?.config !== undefined && Object.keys(record(given.config)).length > 0 && <Part name="Settings" value={given.config} />}
    </>
  );
}

function Part({ name, value, open, note }: { name: string; value: Json; open?: boolean; note?: string | undefined }): ReactNode {
  const taken = countRedactions(stringifyJson(value));
  return (
    <details className="panel-part" open={open ?? false}>
      <summary>
        <h3>{name}</h3>
        {note && <span className="badge ask"><Name text={note} /></span>}
        {taken > 0 && <Redacted />}
      </summary>
      <div className="part-body">
        <CopyButton text={() => stringifyJson(value, 2)} what={name.toLowerCase()} />
        <JsonView value={value} open={3} />
      </div>
    </details>
  );
}

/** The questions of a node: what was asked, and who answered what and when. */
export function Questions({ lane, log }: { lane: Lane; log: RunLog }): ReactNode {
  return lane.questions?.map((q) => {
    const asked = log.events[q.requested];
    const data = record(asked?.payload.data);
    const done = q.resolved === undefined ? undefined : log.events[q.resolved];
    return (
      <section key={q.requested} aria-label="Question" className="panel-part">
        <h3>Question</h3>
        <p>
          <Text text={text(data.title) ?? text(data.prompt) ?? text(data.question) ?? text(asked?.payload.kind) ?? ""} />
        </p>
        <ol className="answers">
          {asked && <Said at={asked.timestamp} who={undefined} did="asked" />}
          {q.votes?.map((seq) => {
            const p = record(log.events[seq]?.payload);
            return <Said key={seq} at={log.events[seq]?.timestamp} who={text(p.decidedBy)} did={text(p.action) ?? "voted"} more={text(p.comment)} />;
          })}
          {done && !q.votes && <Said at={text(done.payload.resolvedAt) ?? done.timestamp} who={text(done.payload.resolvedBy)} did={text(record(done.payload.resumeValue).action) ?? text(done.payload.outcome) ?? "answered"} />}
          {!done && <li className="dim">Not answered yet.</li>}
        </ol>
        {done?.payload.resumeValue !== undefined && <JsonView value={done.payload.resumeValue} open={3} />}
      </section>
    );
  });
}

function Said({ at, who, did, more }: { at: string | undefined; who: string | undefined; did: string; more?: string | undefined }): ReactNode {
  return (
    <li>
      <strong><Name text={did} /></strong>
      {who && <> by <Name text={who} /></>}
      {at && <span className="dim">, <time dateTime={at}>{dateTime(at)}</time></span>}
      {more && <> · <Text text={more} quoted /></>}
    </li>
  );
}
