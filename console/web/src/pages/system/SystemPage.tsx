import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { fetchJson } from "../../api/client";
import { ApiError } from "../../api/errors";
import type { Json } from "../../api/json";
import { useConfig, useMay } from "../../api/session";
import { basePath, hostURL } from "../../api/base";
import { useTitle } from "../../ui/title";
import { number, record, text } from "../../ladder/events";
import { useCapabilities } from "../../ladder/ui/context";
import { QuarantineList } from "../../quarantine/QuarantineList";
import { Icon } from "../../ui/Icon";
import { JsonView } from "../../ui/JsonView";
import { duration } from "../../ui/time";
import { inWords } from "../capabilities/families";
import { ofRun } from "../run/links";
import "../capabilities/capabilities.css";
import "./system.css";

type Probe = { status: number; ms: number; body: Json | undefined };

async function probe(path: string, signal: AbortSignal): Promise<Probe> {
  const start = performance.now();
  try {
    const body = await fetchJson(path, { signal, cache: "no-store" });
    return { status: 200, ms: performance.now() - start, body };
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, ms: performance.now() - start, body: error.details };
    throw error;
  }
}

/** The host's health, version and limits. */
export default function SystemPage(): ReactNode {
  useTitle("System");
  const config = useConfig();
  const links = config.links.filter((l) => !ofRun(l));
  const discovery = useCapabilities();
  const implementation = record(discovery.implementation);
  const reader = useMay("runs:read");
  return (
    <>
      <h1>System</h1>
      <div className="families system">
        <section className="family" aria-labelledby="health">
          <h2 id="health">Health</h2>
          <Health path="/healthz" name="Process is running" />
          <Health path="/readyz" name="Ready for requests" />
        </section>
        {reader && (
          <section className="family" aria-labelledby="quarantine">
            <h2 id="quarantine">Quarantined runs</h2>
            <p className="dim small">Runs that the host cannot load or continue. Open one to retry or end it.</p>
            <QuarantineList />
          </section>
        )}
        <section className="family" aria-labelledby="what">
          <h2 id="what">About</h2>
          <dl className="members">
            <Row name="implementation" value={`${text(implementation.name) ?? "unknown"} ${text(implementation.version) ?? ""}`} />
            {config.version && <Row name="console" value={config.version} />}
            <Row name="mode" value={config.mode} />
            <Row name="protocol" value={text(discovery.protocolVersion)} />
            <Row name="engine version" value={number(discovery.engineVersion)} />
            <Row name="event log schema" value={number(discovery.eventLogSchemaVersion)} />
            <Row name="REST" value={hostURL} />
            <Row name="base path" value={basePath || "/"} />
            <Row name="gRPC" value={text(record(discovery.grpc).endpoint)} />
          </dl>
        </section>
        <section className="family" aria-labelledby="limits">
          <h2 id="limits">Limits</h2>
          <dl className="members">
            {Object.entries({ ...record(discovery.limits), ...config.limits }).map(([name, v]) => (
              <Row key={name} name={inWords(name.replace(/Ms$/, ""))} value={name.endsWith("Ms") ? duration(Number(v)) : (number(v) ?? text(v))} />
            ))}
            <Row name="runs count as stalled after" value={duration(config.stalledAfterMs)} />
          </dl>
        </section>
        {links.length > 0 && (
          <section className="family" aria-labelledby="links">
            <h2 id="links">External links</h2>
            <ul>
              {links.map((l) => (
                <li key={l.url}>
                  <a href={l.url} rel="noreferrer">
                    {l.name}
                  </a>
                </li>
              ))}
            </ul>
          </section>
        )}
        <section className="family" aria-labelledby="config">
          <h2 id="config">The console's configuration</h2>
          <p className="dim small">What the host sends before sign-in. It contains no secrets.</p>
          <JsonView value={config as unknown as Json} open={2} />
        </section>
      </div>
    </>
  );
}

function Row({ name, value }: { name: string; value: string | number | undefined }): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value === undefined ? <span className="dim">–</span> : typeof value === "number" ? value.toLocaleString("en") : value}</dd>
    </div>
  );
}

function Health({ path, name }: { path: string; name: string }): ReactNode {
  const { data, error, refetch, isFetching } = useQuery({ queryKey: ["probe", path], queryFn: ({ signal }) => probe(path, signal), retry: false, staleTime: 0 });
  const good = data?.status === 200;
  return (
    <div className="health">
      <span className={good ? "status good" : data || error ? "status bad" : "status idle"}>
        <Icon name={good ? "check" : data || error ? "cross" : "dot"} />
        {good ? "OK" : data ? `status ${data.status}` : error ? "no response" : "checking"}
      </span>
      <span>
        {name} <code className="dim">{path}</code>
      </span>
      <span className="dim small">{data && `${Math.round(data.ms)} ms`}</span>
      <button type="button" className="quiet" disabled={isFetching} onClick={() => void refetch()}>
        Ask again<span className="unseen">: {name}</span>
      </button>
      {data?.body !== undefined && !good && <JsonView value={data.body} />}
    </div>
  );
}
