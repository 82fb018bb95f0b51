import type { ReactNode } from "react";
import type { Json } from "../../api/json";
import { useConfig } from "../../api/session";
import { basePath, hostURL } from "../../api/base";
import { useTitle } from "../../ui/title";
import { number, record, text } from "../../ladder/events";
import { useCapabilities } from "../../ladder/ui/context";
import { JsonView } from "../../ui/JsonView";
import { duration } from "../../ui/time";
import { inWords, sentence } from "../capabilities/families";
import { ofRun } from "../run/links";
import { SystemHead } from "./Tabs";

/** The host's version, limits and links. */
export default function AboutPage(): ReactNode {
  useTitle("About this host");
  const config = useConfig();
  const links = config.links.filter((l) => !ofRun(l));
  const discovery = useCapabilities();
  const implementation = record(discovery.implementation);
  return (
    <>
      <SystemHead title="About this host" />
      <div className="families system">
        <section className="family" aria-labelledby="what">
          <h2 id="what">About</h2>
          <dl className="members">
            <Row name="Implementation" value={`${text(implementation.name) ?? "unknown"} ${text(implementation.version) ?? ""}`} />
            {config.version && <Row name="Console" value={config.version} />}
            <Row name="Mode" value={config.mode} />
            <Row name="Protocol" value={text(discovery.protocolVersion)} />
            <Row name="Engine version" value={number(discovery.engineVersion)} />
            <Row name="Event log schema" value={number(discovery.eventLogSchemaVersion)} />
            <Row name="REST" value={hostURL} />
            <Row name="Base path" value={basePath || "/"} />
            <Row name="gRPC" value={text(record(discovery.grpc).endpoint)} />
          </dl>
        </section>
        <section className="family" aria-labelledby="limits">
          <h2 id="limits">Limits</h2>
          <dl className="members">
            {Object.entries({ ...record(discovery.limits), ...config.limits }).map(([name, v]) => (
              <Row key={name} name={sentence(inWords(name.replace(/Ms$/, "")))} value={name.endsWith("Ms") ? duration(Number(v)) : (number(v) ?? text(v))} />
            ))}
            <Row name="Runs count as stalled after" value={duration(config.stalledAfterMs)} />
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
