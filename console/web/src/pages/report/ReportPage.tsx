import { useMemo, type ReactNode } from "react";
import { Link, useLocation, useParams } from "wouter";
import { useTitle } from "../../ui/title";
import { Explanation } from "../../explain/Explanation";
import { envelopePath } from "../../ladder/ui/Ladder";
import { useRunLog } from "../../live/useRunLog";
import { useView, Viewed } from "../../live/useView";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Status } from "../../ui/Status";
import { Name, Text } from "../../ui/Text";
import { dateTime, duration } from "../../ui/time";
import { CostView } from "../run/CostView";
import { nextActor } from "../run/nextActor";
import { useSnapshot } from "../run/useRun";
import { chainOf, type Step } from "./chain";
import "./report.css";

/** A printable page with the outcome of a run and its causes. */
export default function ReportPage(): ReactNode {
  const { runId = "" } = useParams<{ runId: string }>();
  const [, navigate] = useLocation();
  const log = useRunLog(runId);
  const { data: snapshot, error } = useSnapshot(runId, log);
  const view = useView(log);
  const answers = view.data?.answers;
  // oxlint-disable-next-line react/exhaustive-deps -- the log is one mutable object; its version changes as it grows
  const steps = useMemo(() => chainOf(log.events, answers ?? []), [log, log.version, answers]);
  const title = `Report of ${snapshot?.workflowId ?? "run"} ${shortId(runId)}`;
  useTitle(title);
  return (
    <article className="report">
      <nav aria-label="Breadcrumb" className="crumbs">
        <Link href={`/runs/${encodeURIComponent(runId)}`}><Name text={snapshot?.workflowId ?? "Run"} /> {shortId(runId)}</Link>
      </nav>
      <div className="page-head">
        <h1>
          <Name text={title} />
        </h1>
        {snapshot && <Status status={snapshot.status} />}
        <span className="grow" />
        <button type="button" onClick={() => window.print()}>
          Print
        </button>
      </div>
      {error && <ErrorNote error={error} />}
      {snapshot && (
        <>
          <p>
            <Name text={nextActor(snapshot, log.events) ?? ""} />
          </p>
          <dl className="facts">
            <Fact name="Id" value={runId} />
            <Fact name="Created" value={snapshot.createdAt && dateTime(snapshot.createdAt)} />
            <Fact name="Took" value={snapshot.startedAt && snapshot.completedAt && duration(Date.parse(snapshot.completedAt) - Date.parse(snapshot.startedAt))} />
            <Fact name="Events" value={log.events.length.toLocaleString("en")} />
            <Fact name="Started by" value={snapshot.owner?.principal} />
            <Fact name="Tags" value={snapshot.tags?.join(", ")} />
          </dl>
          {snapshot.error && (
            <div className="note bad">
              <Explanation code={snapshot.error.code} message={snapshot.error.message} />
            </div>
          )}
        </>
      )}
      <section aria-labelledby="chain">
        <h2 id="chain">What happened</h2>
        {view.data === undefined && !view.error ? null : steps.length === 0 ? <p className="empty">Nothing yet.</p> : <Chain runId={runId} steps={steps} />}
      </section>
      <h2>Tokens and cost</h2>
      <Viewed query={view}>{(loaded) => <CostView view={loaded} onSelect={(e) => navigate(`/runs/${encodeURIComponent(runId)}?e=${e}`)} />}</Viewed>
    </article>
  );
}

function Fact({ name, value }: { name: string; value: string | undefined }): ReactNode {
  if (!value) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

// Long runs show only their first and last steps.
const maxSteps = 400;

function Chain({ runId, steps }: { runId: string; steps: Step[] }): ReactNode {
  const shown = steps.length <= maxSteps ? steps : [...steps.slice(0, maxSteps / 2), ...steps.slice(-maxSteps / 2)];
  const zero = Date.parse(steps[0]?.at ?? "");
  return (
    <table>
      <caption className="unseen">Steps of the run, in order</caption>
      <thead>
        <tr>
          <th scope="col" className="num">
            #
          </th>
          <th scope="col" className="num">
            Since start
          </th>
          <th scope="col">Node</th>
          <th scope="col">Step</th>
          <th scope="col" className="num">
            Tokens
          </th>
        </tr>
      </thead>
      <tbody>
        {shown.map((s, i) => (
          <tr key={s.sequence} className={i === maxSteps / 2 && steps.length > maxSteps ? "after-gap" : undefined}>
            <td className="num nowrap">
              <Link href={`/runs/${encodeURIComponent(runId)}?e=${s.sequence}`}>#{s.sequence}</Link>
            </td>
            <td className="num nowrap">{duration(Math.max(0, Date.parse(s.at) - zero))}</td>
            <td className="nowrap">
              <Name text={s.nodeId ?? ""} />
            </td>
            <td className={s.tone === "bad" ? "bad-text" : undefined}>
              {s.envelope ? (
                <Link href={envelopePath(runId, s.envelope)}>
                  <Text text={s.words} />
                </Link>
              ) : (
                <Text text={s.words} />
              )}
              {s.code && (
                <>
                  {" "}
                  <code><Name text={s.code} /></code>
                </>
              )}
            </td>
            <td className="num nowrap">{s.tokens ? `${s.tokens[0].toLocaleString("en")} → ${s.tokens[1].toLocaleString("en")}` : "–"}</td>
          </tr>
        ))}
      </tbody>
      {steps.length > maxSteps && (
        <tfoot>
          <tr>
            <td colSpan={5}>{(steps.length - maxSteps).toLocaleString("en")} steps in the middle are left out.</td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}
