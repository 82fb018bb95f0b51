import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { lazy, useId, useMemo, useState, type DragEvent, type ReactNode } from "react";
import { Link, Route, Router, Switch } from "wouter";
import { memoryLocation } from "wouter/memory-location";
import { announce } from "../../ui/announce";
import { consolePath } from "../../api/base";
import { useTitle } from "../../ui/title";
import { RunLog } from "../../live/runLog";
import { RecordedLog } from "../../live/useRunLog";
import { viewKey } from "../../live/useView";
import { checkSeal, largest, readRecorded, textOf, type Recorded } from "./read";
import { Name } from "../../ui/Text";
import "./bundle.css";

const RunPage = lazy(() => import("../run/RunPage"));
const ReportPage = lazy(() => import("../report/ReportPage"));
const EnvelopePage = lazy(() => import("../envelope/EnvelopePage"));

type Opened = Recorded & { name: string };

/** Shows a run from a file like a run page. The file stays in the browser. */
export default function BundlePage(): ReactNode {
  const [opened, open] = useState<Opened>();
  return opened ? <Shown key={opened.name} opened={opened} onClose={() => open(undefined)} /> : <Ask onOpen={open} />;
}

function Ask({ onOpen }: { onOpen: (opened: Opened) => void }): ReactNode {
  useTitle("Open a file");
  const id = useId();
  const [wrong, setWrong] = useState<string>();
  const read = (file: File | undefined): void => {
    if (!file) return;
    if (file.size > largest) {
      setWrong(`${file.name} is larger than ${largest / 1024 / 1024} MiB.`);
      return;
    }
    textOf(file)
      .then(async (text) => {
        const seal = await checkSeal(text);
        const recorded = readRecorded(text);
        if (seal) recorded.notes.push(seal);
        announce(`Opened ${file.name}`);
        onOpen({ ...recorded, name: file.name });
      })
      .catch((error: unknown) => setWrong(`${file.name}: ${error instanceof Error ? error.message : "it cannot be read."}`));
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  };
  return (
    <>
      <h1>Open a file</h1>
      <div className="file-drop card" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <label htmlFor={id}>A debug bundle, an archive, or events as JSON lines</label>
        <input id={id} type="file" accept=".json,.jsonl,.ndjson,.gz,application/json,application/gzip" onChange={(event) => read(event.target.files?.[0])} />
        <p className="dim small">The file is read in this browser and is not sent anywhere.</p>
        {wrong && (
          <p className="note bad" role="alert">
            {wrong}
          </p>
        )}
      </div>
    </>
  );
}

function Shown({ opened, onClose }: { opened: Opened; onClose: () => void }): ReactNode {
  const { snapshot, events, view, notes, name } = opened;
  const path = `/runs/${encodeURIComponent(snapshot.runId)}`;
  const inside = useMemo(() => {
    const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Number.POSITIVE_INFINITY, gcTime: Number.POSITIVE_INFINITY, retry: false } } });
    queries.setQueryData(["run", snapshot.runId], snapshot);
    queries.setQueryData(viewKey(snapshot.runId), view);
    for (const over of [true, false]) queries.setQueryData(["run", snapshot.runId, "of-envelope", over], snapshot);
    // The host's workflow of this name may differ from the file's.
    queries.setQueryData(["workflow", snapshot.workflowId], {});
    return { queries, log: new RunLog(snapshot.runId, events), location: memoryLocation({ path }) };
  }, [snapshot, events, view, path]);
  return (
    <>
      <div className="note idle file-head">
        <p>
          <strong>
            <Name text={name} />
          </strong>{" "}
          <Name text={notes.join(" ")} />
        </p>
        <button type="button" onClick={onClose}>
          Close the file
        </button>
      </div>
      {/* The position in the file is not part of the URL, because the link would not work elsewhere. */}
      <Router hook={inside.location.hook} searchHook={inside.location.searchHook} hrefs={(href) => consolePath + href}>
        <QueryClientProvider client={inside.queries}>
          <RecordedLog value={inside.log}>
            <Switch>
              <Route path="/runs/:runId">{(at) => (at.runId === snapshot.runId ? <RunPage /> : <Elsewhere back={path} />)}</Route>
              <Route path="/runs/:runId/envelopes/:envelope?">{(at) => (at.runId === snapshot.runId ? <EnvelopePage /> : <Elsewhere back={path} />)}</Route>
              <Route path="/runs/:runId/report">{(at) => (at.runId === snapshot.runId ? <ReportPage /> : <Elsewhere back={path} />)}</Route>
              <Route>
                <Elsewhere back={path} />
              </Route>
            </Switch>
          </RecordedLog>
        </QueryClientProvider>
      </Router>
    </>
  );
}

function Elsewhere({ back }: { back: string }): ReactNode {
  return (
    <>
      <h1>Not in the file</h1>
      <p>
        The file holds one run. <Link href={back}>Back to the file</Link>
      </p>
    </>
  );
}
