import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Link } from "wouter";
import { api, body } from "../../api/client";
import { useMay } from "../../api/session";
import type { components } from "../../api/schema";
import { QuarantineList } from "../../quarantine/QuarantineList";
import { Ago } from "../../ui/Ago";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name } from "../../ui/Text";
import { dayTime } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { alarms, withReading, type Readings } from "./alarms";
import { Health } from "./Health";
import { bytes } from "./bytes";
import { Lacks, SystemHead } from "./Tabs";

type System = components["schemas"]["GetSystemResult"];

// Queue, leases and providers cause no event that a page could follow.
const refreshEvery = 5000;

/** What the installation does now: queue, dispatchers, log, read model, providers, and what is wrong. */
export default function SystemPage(): ReactNode {
  useTitle("System");
  const operator = useMay("system:read");
  const reader = useMay("runs:read");
  const { data, error, refetch } = useQuery({
    queryKey: ["system"],
    queryFn: ({ signal }) => body(api.GET("/v1/system", { signal })),
    enabled: operator,
    refetchInterval: refreshEvery,
  });
  const [readings, setReadings] = useState<Readings<System>>({});
  const compared = data ? withReading(readings, data) : readings;
  if (compared !== readings) setReadings(compared);
  return (
    <>
      <SystemHead title="System">{data && <span className="dim small">as of {dayTime(data.now)}</span>}</SystemHead>
      {!operator && <Lacks scope="system:read" />}
      {error && !data && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {error && data && <p className="note ask">The host does not respond. These figures are from {dayTime(data.now)}.</p>}
      {data && data.problems.length > 0 && (
        <ul className="problems" aria-label="Problems">
          {data.problems.map((p) => (
            <li key={`${p.part} ${p.message}`} className="note bad">
              <strong>{p.part}</strong>: <Name text={p.message} />
            </li>
          ))}
        </ul>
      )}
      <div className="families system">
        <section className="family" aria-labelledby="health">
          <h2 id="health">Health</h2>
          <Health path="/healthz" name="Process is running" />
          <Health path="/readyz" name="Ready for requests" />
        </section>
        {data && <Numbers system={data} before={compared.before} />}
        {reader && <Failures />}
        {reader && (
          <section className="family" aria-labelledby="quarantine">
            <h2 id="quarantine">Quarantined runs</h2>
            <p className="dim small">Runs that the host cannot load or continue. Open one to retry or end it.</p>
            <QuarantineList />
          </section>
        )}
      </div>
      {data && <Dispatchers system={data} />}
      {data && <Providers system={data} />}
    </>
  );
}

function Numbers({ system, before }: { system: System; before: System | undefined }): ReactNode {
  const { queue, log, readModel } = system;
  const alarm = alarms(before, system);
  return (
    <>
      {queue && (
        <section className="family" aria-labelledby="queue">
          <h2 id="queue">Queue</h2>
          <dl className="members">
            <Row name="Runs waiting for a dispatcher" value={queue.waiting} alarm={alarm.waiting} />
            <Row name="Runs held by dispatchers" value={queue.taken} />
            <Row name="Runs waiting for a limit" value={queue.limited} />
          </dl>
        </section>
      )}
      {log && (
        <section className="family" aria-labelledby="log">
          <h2 id="log">Run log (NATS)</h2>
          <dl className="members">
            <Row name="Size" value={log.bytes === undefined ? "unknown" : bytes(log.bytes)} />
            <Row name="Last position" value={log.end} />
            <Row name="Newest record" value={log.newestAt && <Ago at={log.newestAt} />} />
          </dl>
        </section>
      )}
      {readModel && (
        <section className="family" aria-labelledby="readmodel">
          <h2 id="readmodel">Read model (database)</h2>
          <dl className="members">
            <Row name="Records behind the log" value={readModel.behind} alarm={alarm.behind} />
            <Row name="Open streams and waiting reads" value={readModel.followers} />
            <Row name="Unreadable records" value={readModel.damagedRecords} alarm={readModel.damagedRecords > 0} />
            <Row name="Rebuilds since the start" value={readModel.rebuilds} />
          </dl>
        </section>
      )}
    </>
  );
}

function Row({ name, value, alarm }: { name: string; value: ReactNode; alarm?: boolean }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd className={alarm ? "alarm" : undefined}>{value === undefined ? <span className="dim">–</span> : typeof value === "number" ? value.toLocaleString("en") : value}</dd>
    </div>
  );
}

function Dispatchers({ system: { dispatchers } }: { system: System }): ReactNode {
  return (
    <section aria-labelledby="dispatchers" className="system-table">
      <h2 id="dispatchers">Dispatchers</h2>
      <div className="scroll" role="group" aria-labelledby="dispatchers" tabIndex={0}>
        <table aria-labelledby="dispatchers">
          <thead>
            <tr>
              <th scope="col">Process</th>
              <th scope="col">Host</th>
              <th scope="col">State</th>
              <th scope="col" className="num">Runs</th>
              <th scope="col">Started</th>
              <th scope="col">Lease renewed</th>
            </tr>
          </thead>
          <tbody>
            {dispatchers.map((d) => (
              <tr key={d.process}>
                <td>
                  <code>{d.process}</code>
                </td>
                <td>
                  <Name text={d.host} />
                </td>
                <td>{d.state}</td>
                <td className="num">{d.runs.toLocaleString("en")}</td>
                <td>
                  <Ago at={d.startedAt} />
                </td>
                <td title={`The lease ends ${dayTime(d.expiresAt)} unless it is renewed.`}>
                  <Ago at={d.renewedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {dispatchers.length === 0 && <p className="note bad">No dispatcher has a lease: no run is executed.</p>}
    </section>
  );
}

const limit = (n: number | undefined): string => (n === undefined ? "no limit" : n.toLocaleString("en"));

function Providers({ system: { providers } }: { system: System }): ReactNode {
  return (
    <section aria-labelledby="providers" className="system-table">
      <h2 id="providers">Model providers</h2>
      <p className="dim small">Limits apply to all dispatchers together. Calls and errors are those of one dispatcher.</p>
      <div className="scroll" role="group" aria-labelledby="providers" tabIndex={0}>
        <table aria-labelledby="providers">
          <thead>
            <tr>
              <th scope="col">Provider</th>
              <th scope="col" className="num">Active calls</th>
              <th scope="col" className="num">Waiting</th>
              <th scope="col" className="num">Concurrent limit</th>
              <th scope="col" className="num">Requests a minute</th>
              <th scope="col" className="num">Tokens a minute</th>
              <th scope="col">Last success</th>
              <th scope="col">Last error</th>
            </tr>
          </thead>
          <tbody>
            {providers.map((p) => (
              <tr key={p.provider}>
                <th scope="row">
                  <Name text={p.provider} />
                  {p.heldUntil && <span className="status ask">not called until {dayTime(p.heldUntil)}</span>}
                </th>
                <td className="num">{p.inFlight}</td>
                <td className="num">{p.waiting}</td>
                <td className="num">{limit(p.maxConcurrent)}</td>
                <td className="num">{limit(p.requestsPerMinute)}</td>
                <td className="num">{limit(p.tokensPerMinute)}</td>
                <td>{p.lastSuccessAt ? <Ago at={p.lastSuccessAt} /> : <span className="dim">–</span>}</td>
                <td>
                  {p.lastError ? (
                    <>
                      <code>{p.lastError.code}</code>
                      {p.lastError.status !== undefined && ` (HTTP ${p.lastError.status})`}, <Ago at={p.lastError.at} />
                    </>
                  ) : (
                    <span className="dim">none</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Failures(): ReactNode {
  const { data } = useQuery({
    queryKey: ["failures"],
    queryFn: ({ signal }) => body(api.GET("/v1/runs", { params: { query: { filter: "status:failed since:24h", limit: 8 } }, signal })),
    refetchInterval: refreshEvery,
  });
  return (
    <section className="family" aria-labelledby="failures">
      <h2 id="failures">Failed runs of the last 24 hours</h2>
      {data?.runs.length === 0 && <p className="dim">None.</p>}
      {data && data.runs.length > 0 && (
        <ul className="failures">
          {data.runs.map((run) => (
            <li key={run.runId}>
              <Link href={`/runs/${encodeURIComponent(run.runId)}`}>
                <Name text={run.workflowId} /> {shortId(run.runId)}
              </Link>{" "}
              <code>{run.errorCode ?? "unknown"}</code> <span className="dim small">{run.completedAt && <Ago at={run.completedAt} />}</span>
            </li>
          ))}
        </ul>
      )}
      {data?.nextCursor && <Link href="/?filter=status%3Afailed%20since%3A24h">Show all</Link>}
    </section>
  );
}
