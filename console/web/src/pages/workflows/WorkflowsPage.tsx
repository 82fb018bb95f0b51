import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { useMay } from "../../api/session";
import { ago, dateTime, duration, useNow } from "../../ui/time";
import { Empty } from "../../ui/Empty";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { useTitle } from "../../ui/title";
import { Name } from "../../ui/Text";
import { useStatistics, useWorkflows, type Statistics, type WorkflowRow } from "../../workflows/host";
import { workflowPath } from "../../workflows/path";
import { LatestRuns } from "./LatestRuns";
import { costWords, originWords, rateWords } from "./words";
import "./workflows.css";

/** The workflows that the tenant sees, with figures of their latest runs. */
export default function WorkflowsPage(): ReactNode {
  useTitle("Workflows");
  const list = useWorkflows();
  const [find, setFind] = useState("");
  const mayWrite = useMay("workflows:write");
  const all = list.data?.pages.flatMap((page) => page?.workflows ?? []) ?? [];
  const wanted = find.trim().toLowerCase();
  const rows = wanted ? all.filter((w) => `${w.workflowId}\n${w.name}\n${w.file ?? ""}`.toLowerCase().includes(wanted)) : all;
  return (
    <div className="workflows">
      <div className="page-head">
        <h1>Workflows</h1>
        <span className="grow" />
        {mayWrite && (
          <Link href="/workflows-new" className="button">
            <Icon name="plus" /> New workflow
          </Link>
        )}
      </div>
      {all.length > 0 && (
        <search className="workflow-find">
          <input type="search" aria-label="Find workflows" placeholder="Find by name, id or file" value={find} autoComplete="off" spellCheck={false} onChange={(e) => setFind(e.target.value)} />
        </search>
      )}
      {list.error && <ErrorNote error={list.error} onRetry={() => void list.refetch()} />}
      {list.isPending && <p className="loading">Loading workflows…</p>}
      {rows.length > 0 && <Rows rows={rows} />}
      {all.length > 0 && rows.length === 0 && <p className="empty">No workflow matches “{find.trim()}”.</p>}
      {list.isSuccess && all.length === 0 && (
        <Empty icon="flow">
          <p>There are no workflows yet. A workflow is a JSON document: its nodes call models and tools, and ask people.</p>
          {mayWrite ? (
            <Link href="/workflows-new" className="button primary">
              Create a workflow
            </Link>
          ) : (
            <p>Your key lacks the scope workflows:write, which registers them.</p>
          )}
        </Empty>
      )}
      {list.hasNextPage && (
        <p className="more">
          <button type="button" onClick={() => void list.fetchNextPage()} disabled={list.isFetchingNextPage}>
            {list.isFetchingNextPage ? "Loading…" : "Show more workflows"}
          </button>
        </p>
      )}
    </div>
  );
}

function Rows({ rows }: { rows: WorkflowRow[] }): ReactNode {
  const mayRead = useMay("runs:read");
  const mayStart = useMay("runs:create");
  const { of, error } = useStatistics(mayRead ? rows.map((w) => w.workflowId) : []);
  return (
    <>
      {error && <ErrorNote error={error} />}
      <table className="rows">
        <caption className="unseen">Workflows by id. The figures are about the latest 200 runs of each.</caption>
        <thead>
          <tr>
            <th scope="col">Workflow</th>
            <th scope="col">Version</th>
            <th scope="col">Latest runs</th>
            <th scope="col" className="num" title="Completed runs among those that have completed or failed">
              Success
            </th>
            <th scope="col" className="num" title="95 of 100 completed runs took at most this long">
              p95
            </th>
            <th scope="col" className="num" title="Mean cost of these runs that have ended, in US dollars (estimate)">
              Cost per run
            </th>
            <th scope="col" className="num">
              Last run
            </th>
            <th scope="col">
              <span className="unseen">Start</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((w) => (
            <Row key={w.workflowId} row={w} statistics={of.get(w.workflowId)} mayStart={mayStart} />
          ))}
        </tbody>
      </table>
    </>
  );
}

function Row({ row, statistics, mayStart }: { row: WorkflowRow; statistics: Statistics | undefined; mayStart: boolean }): ReactNode {
  const latest = statistics?.latest?.[0];
  return (
    <tr>
      <th scope="row" className="workflow-cell">
        <Link href={workflowPath(row.workflowId)} className="workflow-link">
          <Name text={row.name || row.workflowId} />
        </Link>
        <span className="small dim">
          <code>
            <Name text={row.workflowId} />
          </code>
          {" · "}
          <Name text={originWords(row.origin, row.file)} />
        </span>
        {(row.warnings ?? []).map((warning) => (
          <span key={warning} className="small workflow-warning">
            <Icon name="bang" /> <Name text={warning} />
          </span>
        ))}
      </th>
      <td className="nowrap" data-name="Version">
        <Name text={row.version} />
        {row.versions > 1 && (
          <Link href={workflowPath(row.workflowId, "", { view: "versions" })} className="small more-versions">
            {row.versions} versions
          </Link>
        )}
      </td>
      <td data-name="Latest runs">{statistics && <LatestRuns runs={statistics.latest ?? []} />}</td>
      <Figure name="Success" value={statistics && rateWords(statistics)} />
      <Figure name="p95" value={statistics && (statistics.p95Ms === undefined ? "–" : duration(Number(statistics.p95Ms)))} />
      <Figure name="Cost per run" value={statistics && costWords(statistics)} />
      <td className="num nowrap" data-name="Last run">
        {latest ? <Since at={latest.createdAt} /> : statistics && <span className="dim">never</span>}
      </td>
      <td className="start-cell">
        {mayStart && (
          <Link href={workflowPath(row.workflowId, "start")} className="button" aria-label={`Start a run of ${row.name || row.workflowId}`}>
            <Icon name="play" /> Start
          </Link>
        )}
      </td>
    </tr>
  );
}

function Figure({ name, value }: { name: string; value: string | undefined }): ReactNode {
  return (
    <td className={`num nowrap${value === "–" ? " unknown" : ""}`} data-name={name}>
      {value}
    </td>
  );
}

function Since({ at }: { at: string }): ReactNode {
  const now = useNow();
  return (
    <time dateTime={at} title={dateTime(at)}>
      {ago(now - Date.parse(at))}
    </time>
  );
}
