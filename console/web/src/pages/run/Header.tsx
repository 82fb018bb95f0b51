import type { ReactNode } from "react";
import { Link } from "wouter";
import { isObject, type Json } from "../../api/json";
import { isTerminal, type RunLimit, type RunSnapshot } from "../../api/model";
import { useConfig } from "../../api/session";
import type { RunView } from "../../ladder/model";
import type { RunLog } from "../../live/runLog";
import { useIsRecorded } from "../../live/useRunLog";
import { Ago } from "../../ui/Ago";
import { CopyButton } from "../../ui/CopyButton";
import { Explanation } from "../../explain/Explanation";
import { Live } from "../../live/Live";
import { shortId } from "../../ui/Id";
import { Status } from "../../ui/Status";
import { ago, dateTime, dayTime, duration, useNow } from "../../ui/time";
import { limitWords } from "../../ui/wait";
import { Actions } from "./Actions";
import { modelAsked, text } from "./events";
import { linksOf } from "./links";
import { Metrics } from "./Metrics";
import { nextActor } from "./nextActor";
import { OwnerWords, useOwner, type Owner } from "./Owner";
import { useStalled } from "./useStalled";
import { Name } from "../../ui/Text";
import { escapeHidden } from "../../ui/escape";
import { useQuarantined } from "../../quarantine/host";
import { workflowPath } from "../../workflows/path";
import { QuarantineNote } from "../../quarantine/QuarantineNote";

type Props = {
  runId: string;
  snapshot: RunSnapshot | undefined;
  log: RunLog;
  view: RunView | null | undefined;
  /** The host could not load the run, for example because of a damaged log. */
  unreadable: boolean;
  onFork: () => void;
  onOpen: (seq: number) => void;
};

/** The run's identity, status, next actor and actions. */
export function Header({ runId, snapshot, log, view, unreadable, onFork, onOpen }: Props): ReactNode {
  const recorded = useIsRecorded();
  const active = !recorded && snapshot !== undefined && !isTerminal(snapshot.status);
  const quarantined = useQuarantined(runId, active || (!recorded && !snapshot && unreadable));
  const owner = useOwner(runId, active && !quarantined);
  const limit = active ? (owner ?? snapshot.waybill?.waits)?.limit : undefined;
  const silent = useStalled(snapshot, log);
  const stalled = quarantined || limit ? undefined : silent;
  return (
    <header className="run-head">
      <div className="page-head">
        <h1>
          <Name text={snapshot?.workflowId ?? "Run"} /> <span className="dim">{shortId(runId)}</span>
        </h1>
        <CopyButton text={runId} what="the id of the run" />
        {!recorded && <CopyButton text={() => location.href} what="the link to this page" icon="link" />}
        {snapshot && <Status status={snapshot.status} stalled={stalled !== undefined} quarantined={quarantined !== undefined} />}
        {recorded ? <span className="badge">from a file</span> : <Live state={log.state} />}
        <span className="grow" />
        {snapshot && !recorded && <Actions snapshot={snapshot} log={log} quarantined={quarantined !== undefined} onFork={onFork} />}
      </div>
      {quarantined && <QuarantineNote run={quarantined} />}
      {snapshot && (
        <>
          <p className="next">
            {quarantined ? (
              "No dispatcher executes the run while it is quarantined."
            ) : limit ? (
              <Limited limit={limit} />
            ) : stalled ? (
              <Stalled since={stalled} snapshot={snapshot} />
            ) : (
              <Name text={nextActor(snapshot, log.events) ?? ""} />
            )}
          </p>
          <Metrics snapshot={snapshot} view={view} />
          <Facts snapshot={snapshot} log={log} owner={owner} />
          {snapshot.error && <Failure snapshot={snapshot} log={log} onOpen={onOpen} />}
        </>
      )}
    </header>
  );
}

function Limited({ limit }: { limit: RunLimit }): ReactNode {
  return (
    <>
      Waiting for <Name text={limitWords(limit)} />, since <Ago at={limit.since} />.{limit.until && ` It can start at ${dayTime(limit.until)} at the earliest.`}
    </>
  );
}

function Stalled({ since, snapshot }: { since: number; snapshot: RunSnapshot }): ReactNode {
  const { waits } = snapshot.waybill ?? {};
  const { currentNodeId } = snapshot;
  const at = waits?.nodeId ?? currentNodeId;
  return (
    <>
      No event for {duration(useNow() - since)}; the run's status is {snapshot.status}.{" "}
      {at ? `Current node: ${at}. ` : ""}
      {waits?.heldBy ? (
        <>
          Owned by the dispatcher <code>{waits.heldBy}</code>.
        </>
      ) : waits?.for === "dispatcher" ? (
        "No dispatcher owns it."
      ) : (
        "The host does not report the owner."
      )}
    </>
  );
}

function Facts({ snapshot, log, owner }: { snapshot: RunSnapshot; log: RunLog; owner: Owner | undefined }): ReactNode {
  const fork = forkOf(snapshot);
  const links = linksOf(useConfig().links, snapshot);
  return (
    <dl className="facts">
      {snapshot.createdAt && (
        <Fact name="Created">
          <Moment at={snapshot.createdAt} />
        </Fact>
      )}
      {snapshot.waybill?.workflowVersion !== undefined && (
        <Fact name="Workflow">
          <Link href={workflowPath(snapshot.workflowId)}>
            <Name text={snapshot.workflowId} />
          </Link>{" "}
          <Name text={snapshot.waybill.workflowVersion} />
        </Fact>
      )}
      <Fact name="Events">{log.events.length.toLocaleString("en")}</Fact>
      {owner && (owner.state as string) !== "unknown" && (
        <Fact name="Dispatcher">
          <OwnerWords owner={owner} />
        </Fact>
      )}
      {snapshot.owner?.principal && <Fact name="Started by"><Name text={snapshot.owner.principal} /></Fact>}
      {snapshot.parentRunId && (
        <Fact name="Part of">
          <Link href={`/runs/${snapshot.parentRunId}`}>{shortId(snapshot.parentRunId)}</Link>
          {snapshot.parentNodeId ? `, node ${snapshot.parentNodeId}` : ""}
        </Fact>
      )}
      {fork && (
        <Fact name="Forked from">
          <Link href={`/runs/${fork.runId}?e=${fork.seq}`}>
            {shortId(fork.runId)} at #{fork.seq}
          </Link>
          {fork.mode && ` (${fork.mode})`}
          {fork.words && <> <Name text={fork.words} /></>}{" "}
          <Link href={`/runs/${fork.runId}/diff/${snapshot.runId}`} className="small">
            compare
          </Link>
        </Fact>
      )}
      {snapshot.childRuns && snapshot.childRuns.length > 0 && (
        <Fact name="Children">
          {snapshot.childRuns.slice(0, 5).map((child) => (
            <Link key={child.runId} href={`/runs/${child.runId}`}>
              {shortId(child.runId)}
            </Link>
          ))}
          {snapshot.childRuns.length > 5 && ` and ${snapshot.childRuns.length - 5} more`}
        </Fact>
      )}
      {links.length > 0 && (
        <Fact name="External links">
          {links.map((link) => (
            <a key={link.name} href={link.url} target="_blank" rel="noopener noreferrer">
              {link.name}
            </a>
          ))}
        </Fact>
      )}
      {snapshot.tags && snapshot.tags.length > 0 && <Fact name="Tags"><Name text={snapshot.tags.join(", ")} /></Fact>}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Moment({ at }: { at: string }): ReactNode {
  const since = useNow() - Date.parse(at);
  return (
    <time dateTime={at} title={escapeHidden(at)}>
      {dateTime(at)} {Number.isFinite(since) && <span className="dim">({ago(since)})</span>}
    </time>
  );
}

// The snapshot of a fork names its source; hosts use different members.
function forkOf(snapshot: RunSnapshot): { runId: string; seq: number; mode: string; words: string } | undefined {
  const source = [snapshot.forkedFrom, snapshot.fork, snapshot].find((s) => isObject(s) && (s.sourceRunId ?? (s === snapshot ? undefined : s.runId)));
  if (!isObject(source)) return undefined;
  const runId = text(source.sourceRunId ?? source.runId);
  return runId ? { runId, seq: Number(source.fromSeq ?? 0), mode: text(source.mode), words: editWords(source) } : undefined;
}

/** What a fork executes differently from its source. */
function editWords(fork: { [name: string]: Json | undefined }): string {
  if (text(fork.only)) return `· only node ${text(fork.only)}`;
  const edits = Array.isArray(fork.edits) ? fork.edits.filter(isObject) : [];
  return edits.length === 0 ? "" : `· edited: ${edits.map((e) => `${text(e.nodeId)} (${e.outputs === true ? "outputs" : "settings"})`).join(", ")}`;
}

function Failure({ snapshot, log, onOpen }: { snapshot: RunSnapshot; log: RunLog; onOpen: (seq: number) => void }): ReactNode {
  const failed = log.events.findLast((event) => event.type === "node.failed") ?? log.events.findLast((event) => event.type === "run.failed");
  if (!snapshot.error) return null;
  return (
    <div className="note bad failure">
      <Explanation code={snapshot.error.code} message={snapshot.error.message} />
      {failed && (
        <span className="ways">
          {modelAsked(log.events, failed.nodeId) && (
            <Link href={`/runs/${encodeURIComponent(log.runId)}/envelopes`} className="button primary">
              Show the model's answer
            </Link>
          )}
          <button type="button" onClick={() => onOpen(failed.sequence)}>
            <Name text={failed.nodeId ? `Failed at ${failed.nodeId}` : "Last event"} />, #{failed.sequence}
          </button>
        </span>
      )}
    </div>
  );
}
