import { Suspense, useState, type ReactNode } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { isStatus } from "../../api/errors";
import type { RunEvent, RunSnapshot } from "../../api/model";
import type { RunView } from "../../ladder/model";
import { announce } from "../../ui/announce";
import { useShortcuts } from "../../app/keys";
import { useTitle } from "../../ui/title";
import { useIsRecorded, useRunLog } from "../../live/useRunLog";
import type { RunLog } from "../../live/runLog";
import { useView, Viewed } from "../../live/useView";
import { ErrorNote } from "../../ui/ErrorNote";
import { loaded as lazily } from "../../ui/load";
import { shortId } from "../../ui/Id";
import { lookOf } from "../../ui/Status";
import { copyText } from "../../ui/CopyButton";
import { Empty } from "../../ui/Empty";
import { dayTime } from "../../ui/time";
import { CostView } from "./CostView";
import { DataView } from "./DataView";
import { EventTable } from "./EventTable";
import { Feedback } from "./Feedback";
import { Header } from "./Header";
import { Inspector } from "./Inspector";
import { chosenIn, startsBar } from "./panel/chosen";
import { NodePanel } from "./panel/NodePanel";
import { LookBack, Scrubber, usePast } from "./Scrubber";
import { address, RunTabs, views, type Place, type View } from "./RunTabs";
import { ForkSlot } from "./slots/ForkSlot";
import { InterruptSlot } from "./slots/InterruptSlot";
import { TimelineView } from "./TimelineView";
import { useSnapshot } from "./useRun";
import "./run.css";

const GraphView = lazily(() => import("./GraphView"));

// Above this number of events, the table is the default view.
const manyEvents = 5000;

export default function RunPage(): ReactNode {
  const { runId = "" } = useParams<{ runId: string }>();
  return <Run key={runId} runId={runId} />;
}

function Run({ runId }: { runId: string }): ReactNode {
  const log = useRunLog(runId);
  const query = useSnapshot(runId, log);
  const refused = query.error ?? log.error;
  if (isStatus(query.error, 404, 410) || isStatus(log.error, 404, 410)) return <NoRun runId={runId} gone={isStatus(refused, 410)} />;
  return <Found runId={runId} log={log} query={query} />;
}

function Found({ runId, log, query }: { runId: string; log: RunLog; query: ReturnType<typeof useSnapshot> }): ReactNode {
  const { data: snapshot, error, refetch, dataUpdatedAt } = query;
  const { view, selected, at, go } = useRunAddress(log);
  const [forkFrom, setForkFrom] = useState<number>();
  const recorded = useIsRecorded();
  const past = usePast(log, snapshot, at, (to) => go({ at: to }));
  const shown = past.log;
  const title = `${snapshot?.workflowId ?? "Run"} ${shortId(runId)}`;
  useTitle(snapshot ? `${lookOf(snapshot.status).glyph} ${title}` : title);
  useShortcuts([
    { keys: "t", does: "Timeline or table", run: () => go({ view: view === "timeline" ? "table" : "timeline" }) },
    { keys: "j", does: "Next event", run: () => go({ e: Math.min(log.last, (selected ?? -1) + 1) }) },
    { keys: "k", does: "Previous event", run: () => go({ e: Math.max(0, (selected ?? log.events.length) - 1) }) },
    { keys: "f", does: "Fork from the chosen event", run: () => setForkFrom(selected ?? past.at ?? log.last) },
    ...(recorded
      ? []
      : [
          { keys: "[", does: "Show the run one event earlier", run: () => past.move(Math.max(0, Math.min(past.at ?? log.last, log.last) - 1)) },
          { keys: "]", does: "Show the run one event later", run: () => past.at !== undefined && past.move(Math.min(log.last, past.at + 1)) },
        ]),
    { keys: ".", does: "Copy the link to this page", run: () => void copyText(location.href).then((ok) => ok && announce("Copied the link")) },
  ]);
  const folded = useView(log, at !== undefined && at < log.last ? at : undefined);
  const current = useView(log);
  const event = selected === undefined ? undefined : log.events[selected];
  // Runs from a file and external runs have no definition.
  const drawable = !recorded && snapshot?.waybill?.workflowVersion !== undefined;
  const withPanel = view === "timeline" || (view === "graph" && drawable);
  const inspects = (seq: number): void => go({ view: "table", e: seq });
  return (
    <div className={event || withPanel ? "run-page inspecting" : "run-page"}>
      {error && (
        <>
          <ErrorNote error={error} onRetry={() => void refetch()} />
          {snapshot && <p className="dim small">What follows is as of {dayTime(new Date(dataUpdatedAt).toISOString())}.</p>}
        </>
      )}
      <Header runId={runId} snapshot={snapshot} log={log} view={current.data} unreadable={error !== null} onFork={() => setForkFrom(selected ?? past.at ?? log.last)} onOpen={(e) => go({ e })} />
      {snapshot && !recorded && <InterruptSlot snapshot={snapshot} log={log} />}
      <div className="tabs-line">
        <RunTabs runId={runId} current={view} events={log.events.length} drawable={drawable} e={selected} at={at} />
        {!recorded && <LookBack log={log} past={past} />}
      </div>
      {!recorded && <Scrubber log={log} past={past} createdAt={snapshot?.createdAt} />}
      <div className="run-body">
        <div className="run-view">
          {view === "timeline" && (
            <Viewed query={folded}>
              {(loaded) => <TimelineView view={loaded} past={past.past} lookingBack={past.at !== undefined} selected={selected} onSelect={(e) => go({ e })} />}
            </Viewed>
          )}
          {view === "graph" && snapshot && drawable && (
            <Suspense fallback={<p className="loading">Drawing the graph…</p>}>
              <GraphView snapshot={snapshot} shown={past.snapshot} view={folded.data ?? undefined} selected={event} onSelect={(e) => go({ e })} />
            </Suspense>
          )}
          {view === "table" && <EventTable log={shown} lookingBack={past.at !== undefined} selected={selected} onSelect={(e) => go({ e })} />}
          {view === "data" && <DataView snapshot={past.snapshot} untold={past.error !== undefined && past.error !== null} />}
          {view === "cost" && <Viewed query={folded}>{(loaded) => <CostView view={loaded} onSelect={(e) => go({ e })} />}</Viewed>}
        </div>
        {withPanel && folded.data ? (
          <Panel view={folded.data} event={event} log={log} snapshot={snapshot} onSelect={(e) => go({ e })} onEvent={inspects} onFork={(seq) => setForkFrom(seq)} />
        ) : (
          event && <Inspector event={event} log={log} snapshot={snapshot} onSelect={(e) => go({ e })} onClose={() => go({ e: undefined })} onFork={(seq) => setForkFrom(seq)} />
        )}
      </div>
      {snapshot && !recorded && <Feedback runId={runId} />}
      {snapshot && !recorded && <ForkSlot snapshot={snapshot} log={log} seq={forkFrom ?? Math.max(0, log.last)} open={forkFrom !== undefined} onClose={() => setForkFrom(undefined)} />}
    </div>
  );
}

type PanelProps = {
  view: RunView;
  event: RunEvent | undefined;
  log: RunLog;
  snapshot: RunSnapshot | undefined;
  onSelect: (seq: number | undefined) => void;
  onEvent: (seq: number) => void;
  onFork: (seq: number) => void;
};

/** The panel of the timeline: the node of the chosen bar, or another chosen event. It is always open. */
function Panel({ view, event, log, snapshot, onSelect, onEvent, onFork }: PanelProps): ReactNode {
  const chosen = chosenIn(view, event);
  const close = (): void => onSelect(undefined);
  if (event && (!chosen || !startsBar(view, event.sequence))) {
    return <Inspector event={event} log={log} snapshot={snapshot} onSelect={onSelect} onClose={close} onFork={onFork} />;
  }
  if (!chosen) return <aside className="inspector node-panel" aria-label="Node"><p className="empty">The node appears here when one has started.</p></aside>;
  return (
    <NodePanel
      key={`${chosen.lane.nodeId} ${event?.sequence ?? "default"}`}
      view={view}
      chosen={chosen}
      log={log}
      snapshot={snapshot}
      opened={event !== undefined}
      onClose={close}
      onEvent={onEvent}
      onFork={onFork}
    />
  );
}

// The view is part of the URL, so that a copied link shows the same.
function useRunAddress(log: RunLog): { view: View; selected: number | undefined; at: number | undefined; go: (to: Place) => void } {
  const params = new URLSearchParams(useSearch());
  const [, navigate] = useLocation();
  const asked = params.get("view");
  const named = views.find((v) => v.name === asked)?.name;
  const view: View = named ?? (log.events.length > manyEvents ? "table" : "timeline");
  const sequence = (name: string): number | undefined => {
    const text = params.get(name);
    return text !== null && /^\d+$/.test(text) ? Number(text) : undefined;
  };
  const selected = sequence("e");
  const at = sequence("at");
  const go = (to: Place): void => {
    const next = address(log.runId, { ...(named ? { view: named } : {}), e: selected, at, ...to });
    navigate(next, { replace: true });
  };
  return { view, selected, at, go };
}

function NoRun({ runId, gone }: { runId: string; gone: boolean }): ReactNode {
  const title = gone ? "This run is gone" : "No such run";
  useTitle(title);
  return (
    <Empty icon={gone ? "ban" : "question"} title={title}>
      <p>
        {gone ? "The host no longer keeps its log." : "No run with this id exists, or you do not have access to it."}
      </p>
      <p>
        <code>{runId}</code>
      </p>
      <Link href="/" className="button primary">
        Show all runs
      </Link>
    </Empty>
  );
}
