import { useQuery } from "@tanstack/react-query";
import { Suspense, useState, type ReactNode } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { api, body } from "../../api/client";
import { isStatus } from "../../api/errors";
import type { Json } from "../../api/json";
import { useMay } from "../../api/session";
import { record, text } from "../../ladder/events";
import { Ago } from "../../ui/Ago";
import { CopyButton } from "../../ui/CopyButton";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { JsonView } from "../../ui/JsonView";
import { loaded } from "../../ui/load";
import { Status } from "../../ui/Status";
import { Name, Text } from "../../ui/Text";
import { duration } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { nodesOf, variablesOf, type Definition } from "../../workflows/definition";
import { useDefinition, useStatistics, useVersions, written, type Versions } from "../../workflows/host";
import { workflowPath } from "../../workflows/path";
import { useFeed } from "../../workflows/useFeed";
import { ChangeDialog } from "./ChangeDialog";
import { LatestRuns } from "./LatestRuns";
import { NoWorkflow } from "./NoWorkflow";
import { VersionsView } from "./VersionsView";
import { costWords, originWords, rateWords, readOnlyReason } from "./words";
import "../run/run.css";
import "./workflows.css";

const Graph = loaded(() => import("../../workflows/Graph"));

const views = [
  { name: "graph", word: "Graph" },
  { name: "definition", word: "Definition" },
  { name: "versions", word: "Versions" },
  { name: "runs", word: "Runs" },
] as const;
type View = (typeof views)[number]["name"];

/** A workflow: its graph, definition, versions and latest runs. */
export default function WorkflowPage(): ReactNode {
  const { workflowId = "" } = useParams<{ workflowId: string }>();
  return <Workflow key={workflowId} workflowId={workflowId} />;
}

function Workflow({ workflowId }: { workflowId: string }): ReactNode {
  const params = new URLSearchParams(useSearch());
  const view = views.find((v) => v.name === params.get("view"))?.name ?? "graph";
  const asked = params.get("version") ?? undefined;
  useFeed(workflowId);
  const versions = useVersions(workflowId);
  const current = versions.data?.versions.find((v) => v.current)?.version;
  const version = asked ?? current;
  const definition = useDefinition(workflowId, asked);
  const title = text(definition.data?.name) ?? workflowId;
  useTitle(title);
  if (isStatus(versions.error, 404) || (isStatus(definition.error, 404) && !asked)) return <NoWorkflow workflowId={workflowId} />;
  return (
    <div className="workflow">
      <nav aria-label="Breadcrumb" className="small crumbs">
        <Link href="/workflows">Workflows</Link>
      </nav>
      <Head workflowId={workflowId} title={title} version={version} versions={versions.data} definition={definition.data} />
      {versions.error && <ErrorNote error={versions.error} onRetry={() => void versions.refetch()} />}
      <Figures workflowId={workflowId} />
      <div className="tabs-line">
        <nav className="tabs" aria-label="Views of this workflow">
          {views.map(({ name, word }) => (
            <Link key={name} href={workflowPath(workflowId, "", { view: name, version: asked })} aria-current={view === name ? "page" : undefined} replace>
              {word}
              {name === "versions" && versions.data && <span className="dim"> {versions.data.versions.length}</span>}
            </Link>
          ))}
        </nav>
      </div>
      <Body view={view} workflowId={workflowId} definition={definition} versions={versions.data} />
    </div>
  );
}

type BodyProps = { view: View; workflowId: string; definition: ReturnType<typeof useDefinition>; versions: Versions | undefined };

function Body({ view, workflowId, definition, versions }: BodyProps): ReactNode {
  if (view === "runs") return <RunsView workflowId={workflowId} />;
  if (view === "versions") return versions ? <VersionsView workflowId={workflowId} versions={versions} /> : <p className="loading">Loading versions…</p>;
  if (definition.error) return <ErrorNote error={definition.error} onRetry={() => void definition.refetch()} />;
  if (!definition.data) return <p className="loading">Loading the definition…</p>;
  if (view === "definition") return <DefinitionView definition={definition.data} />;
  return <GraphView definition={definition.data} />;
}

type HeadProps = { workflowId: string; title: string; version: string | undefined; versions: Versions | undefined; definition: Definition | undefined };

function Head({ workflowId, title, version, versions, definition }: HeadProps): ReactNode {
  const [, navigate] = useLocation();
  const mayStart = useMay("runs:create");
  const mayWrite = useMay("workflows:write");
  const [deleting, setDeleting] = useState(false);
  const readOnly = versions && readOnlyReason(versions.origin, versions.file);
  const description = text(definition?.description);
  const shown = versions?.versions.find((v) => v.version === version);
  return (
    <>
      <div className="page-head">
        <h1>
          <Name text={title} />
        </h1>
        {versions && (
          <select
            aria-label="Version"
            value={version ?? ""}
            onChange={(e) => {
              const view = new URLSearchParams(window.location.search).get("view") ?? undefined;
              navigate(workflowPath(workflowId, "", { view, version: versions.versions.find((v) => v.version === e.target.value)?.current ? undefined : e.target.value }), { replace: true });
            }}
          >
            {!shown && version !== undefined && <option value={version}>version {version}, unknown</option>}
            {versions.versions.map((v) => (
              <option key={v.version} value={v.version}>
                version {v.version}
                {v.current ? " (current)" : ""}
              </option>
            ))}
          </select>
        )}
        <span className="grow" />
        <div className="buttons">
          {mayWrite && readOnly && (
            <Link href={`/workflows-new?copy=${encodeURIComponent(workflowId)}${version === undefined ? "" : `&version=${encodeURIComponent(version)}`}`} className="button">
              Save as a copy…
            </Link>
          )}
          {mayWrite && versions && !readOnly && (
            <Link href={workflowPath(workflowId, "edit", { version: shown?.current ? undefined : version })} className="button">
              Edit
            </Link>
          )}
          {mayWrite && versions && !readOnly && (
            <button type="button" className="danger" onClick={() => setDeleting(true)}>
              Delete…
            </button>
          )}
          {mayStart && (
            <Link href={workflowPath(workflowId, "start")} className="button primary">
              <Icon name="play" /> Start a run
            </Link>
          )}
        </div>
      </div>
      <p className="small dim workflow-facts">
        <span>
          <code>
            <Name text={workflowId} />
          </code>
          <CopyButton text={workflowId} what="the id of the workflow" />
        </span>
        {versions && (
          <span>
            <Name text={originWords(versions.origin, versions.file)} />
          </span>
        )}
        {shown && !shown.current && <span>New runs use the current version, not this one.</span>}
      </p>
      {deleting && <ChangeDialog workflowId={workflowId} change={{ verb: "delete" }} onClose={() => setDeleting(false)} />}
      {description && (
        <p className="workflow-description">
          <Text text={description} />
        </p>
      )}
      {mayWrite && readOnly && <p className="note small">{readOnly}</p>}
      {(versions?.warnings ?? []).map((w) => (
        <p key={w} className="note ask small">
          <Name text={w} />
        </p>
      ))}
    </>
  );
}

function Figures({ workflowId }: { workflowId: string }): ReactNode {
  const mayRead = useMay("runs:read");
  const { of, error } = useStatistics(mayRead ? [workflowId] : []);
  const s = of.get(workflowId);
  if (error) return <ErrorNote error={error} />;
  if (!mayRead) return null;
  const figures: [string, ReactNode][] = [
    ["Runs", s ? `${s.runs}${s.more ? " latest" : ""}` : "–"],
    ["Success", s ? rateWords(s) : "–"],
    ["Failed", s ? `${s.failed}` : "–"],
    ["Median", s?.p50Ms === undefined ? "–" : duration(Number(s.p50Ms))],
    ["p95", s?.p95Ms === undefined ? "–" : duration(Number(s.p95Ms))],
    ["Cost per run", s ? costWords(s) : "–"],
    ["Latest runs", s ? <LatestRuns key="l" runs={s.latest ?? []} /> : "–"],
  ];
  return (
    <dl className="metrics" aria-label="Figures of the workflow">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function GraphView({ definition }: { definition: Definition }): ReactNode {
  const [chosen, choose] = useState<string>();
  const nodes = nodesOf(definition);
  const node = nodes.find((n) => n.id === chosen);
  return (
    <div className="graph-with-panel">
      <Suspense fallback={<p className="loading">Drawing the graph…</p>}>
        <Graph definition={definition} selected={chosen} onSelect={choose} />
      </Suspense>
      <aside className="card node-facts" aria-label="Node">
        {node ? <NodeFacts definition={node.raw} /> : <Overview definition={definition} />}
      </aside>
    </div>
  );
}

const nodeParts = ["inputs", "config", "settings", "envelopeContract", "agent", "outputSensitivity"] as const;

function NodeFacts({ definition }: { definition: Definition }): ReactNode {
  const parts = nodeParts.filter((name) => Object.keys(record(definition[name])).length > 0);
  return (
    <>
      <h2>
        <Name text={text(definition.name) || (text(definition.id) ?? "")} />
      </h2>
      <p className="small dim">
        <code>
          <Name text={text(definition.id) ?? ""} />
        </code>{" "}
        · <Name text={text(definition.typeId) ?? ""} />
      </p>
      {text(definition.notes) && (
        <p>
          <Text text={text(definition.notes) ?? ""} />
        </p>
      )}
      {parts.length === 0 && <p className="dim">This node has no configuration.</p>}
      {parts.map((name) => (
        <section key={name} aria-label={name}>
          <h3>{name}</h3>
          <JsonView value={definition[name] as Json} open={2} />
        </section>
      ))}
    </>
  );
}

/** What a run of the workflow is given. */
function Overview({ definition }: { definition: Definition }): ReactNode {
  const variables = variablesOf(definition);
  return (
    <>
      <h2>Inputs</h2>
      {variables.length === 0 && <p className="dim">This workflow declares no inputs.</p>}
      <dl className="inputs">
        {variables.map((v) => (
          <div key={v.name}>
            <dt>
              <code>
                <Name text={v.name} />
              </code>{" "}
              <span className="dim small">
                {v.type}
                {v.required && v.defaultValue === undefined ? ", required" : ""}
                {v.sensitive ? ", masked" : ""}
              </span>
            </dt>
            {v.description && (
              <dd className="small">
                <Text text={v.description} />
              </dd>
            )}
          </div>
        ))}
      </dl>
      <p className="dim small">Choose a node of the graph to see its configuration.</p>
    </>
  );
}

function DefinitionView({ definition }: { definition: Definition }): ReactNode {
  return (
    <section className="card" aria-label="Definition">
      <div className="card-head">
        <h2>Definition</h2>
        <CopyButton text={() => written(definition)} what="the definition" />
      </div>
      <JsonView value={definition} open={3} />
    </section>
  );
}

const recent = 20;

function RunsView({ workflowId }: { workflowId: string }): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["workflow-runs", workflowId],
    queryFn: ({ signal }) => body(api.GET("/v1/runs", { params: { query: { workflowId, limit: recent } }, signal })),
    refetchOnMount: "always",
  });
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return <p className="loading">Loading runs…</p>;
  if (data.runs.length === 0) return <p className="empty">This workflow has no runs yet.</p>;
  return (
    <>
      <div className="scroll" role="group" aria-label="Latest runs" tabIndex={0}>
        <table className="rows">
          <caption className="unseen">The latest {recent} runs, newest first</caption>
          <thead>
            <tr>
              <th scope="col">Status</th>
              <th scope="col">Run</th>
              <th scope="col">Error</th>
              <th scope="col" className="num">
                Created
              </th>
              <th scope="col" className="num">
                Took
              </th>
            </tr>
          </thead>
          <tbody>
            {data.runs.map((run) => (
              <tr key={run.runId}>
                <td data-name="Status">
                  <Status status={run.status} stalled={run.stalled} quarantined={run.quarantine !== undefined} />
                </td>
                <th scope="row" className="nowrap">
                  <Link href={`/runs/${run.runId}`} className="mono">
                    {run.runId}
                  </Link>
                </th>
                <td data-name="Error">{run.errorCode && <code className="bad-text"><Name text={run.errorCode} /></code>}</td>
                <td className="num nowrap" data-name="Created">
                  <Ago at={run.createdAt} />
                </td>
                <td className="num nowrap" data-name="Took">{run.startedAt && run.completedAt ? duration(Date.parse(run.completedAt) - Date.parse(run.startedAt)) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="more">
        <Link href={`/?filter=${encodeURIComponent(`workflow:${workflowId}`)}`}>All runs of this workflow</Link>
      </p>
    </>
  );
}
