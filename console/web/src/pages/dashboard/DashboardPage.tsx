import { useId, type ReactNode } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { useMay } from "../../api/session";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { Name } from "../../ui/Text";
import { minute } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { useStatistics } from "./host";
import { Overview } from "./Overview";
import { Quality } from "./Quality";
import { Tenants } from "./Tenants";
import { readView, spans, viewURL, type View } from "./view";
import "./dashboard.css";

/** What the runs of the tenant did in a span of time: figures, charts and tables. */
export default function DashboardPage(): ReactNode {
  const view = readView(useSearch());
  useTitle(view.view === "quality" ? "Quality" : "Dashboard");
  const mayStart = useMay("runs:create");
  const { data, error, isPending, refetch } = useStatistics(view);
  const empty = data && Number(data.runs.created) + Number(data.runs.completed) + Number(data.runs.failed) + Number(data.runs.cancelled) + Number(data.usage.calls) === 0;
  return (
    <div className="dashboard">
      <div className="page-head">
        <h1>{view.view === "quality" ? "Quality of answers" : "Dashboard"}</h1>
        <span className="grow" />
        <Choices view={view} />
      </div>
      <nav aria-label="Dashboards" className="dash-tabs">
        <ul>
          {(["overview", "quality"] as const).map((name) => (
            <li key={name}>
              <Link href={viewURL({ ...view, view: name })} aria-current={view.view === name ? "page" : undefined}>
                {name === "overview" ? "Overview" : "Quality"}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      {data && !empty && (
        <p className="dim small dash-span">
          {minute(data.since)} to {minute(data.until)}, in steps of {stepWords(data.stepSeconds)}
        </p>
      )}
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {isPending && <p className="loading">Loading figures…</p>}
      {empty && (
        <div className="empty">
          <p>No runs in this span{view.workflow && " of this workflow"}.</p>
          {mayStart && (
            <Link href="/workflows" className="button primary">
              Start a run
            </Link>
          )}
        </div>
      )}
      {data && !empty && (view.view === "quality" ? <Quality data={data} view={view} /> : <Overview data={data} view={view} />)}
      {data && view.view !== "quality" && <Tenants view={view} />}
    </div>
  );
}

const stepWords = (seconds: number): string => (seconds < 3600 ? `${seconds / 60} minutes` : seconds < 86_400 ? "an hour" : "a day (UTC)");

function Choices({ view }: { view: View }): ReactNode {
  const id = useId();
  const [, navigate] = useLocation();
  return (
    <div className="dash-choices">
      {view.workflow && (
        <span className="dash-workflow">
          <Name text={view.workflow} />
          <Link href={viewURL({ ...view, workflow: "" })} aria-label="Show all workflows" title="Show all workflows">
            <Icon name="cross" />
          </Link>
        </span>
      )}
      <label htmlFor={id} className="unseen">
        Span of time
      </label>
      <select id={id} value={view.span.id} onChange={({ target }) => navigate(viewURL({ ...view, span: spans.find((s) => s.id === target.value) ?? view.span }))}>
        {spans.map((s) => (
          <option key={s.id} value={s.id}>
            {s.name}
          </option>
        ))}
      </select>
    </div>
  );
}
