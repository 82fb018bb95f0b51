import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { fetchJson } from "../../api/client";
import { isObject, type Json } from "../../api/json";
import { hostURL } from "../../api/base";
import { useTitle } from "../../ui/title";
import { CopyAs } from "../../copyas/CopyAs";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { JsonView } from "../../ui/JsonView";
import { Text } from "../../ui/Text";
import "../../styles/form.css";
import "./capabilities.css";
import { ModelGate, Substitutions } from "./ModelGate";
import { families, inWords, sentence, type Family } from "./families";

/** The host's advertised capabilities. */
export default function CapabilitiesPage(): ReactNode {
  useTitle("Capabilities");
  const { data, error, refetch } = useQuery({
    queryKey: ["capabilities"],
    queryFn: ({ signal }) => fetchJson("/.well-known/openwop", { signal }),
    staleTime: 300_000,
  });
  return (
    <>
      <div className="page-head">
        <h1>Capabilities</h1>
        <CopyAs request={{ method: "GET", path: "/.well-known/openwop", open: true, waybill: "capabilities", grpc: { method: "openwop.v1.Engine/GetCapabilities", message: {} } }} />
      </div>
      {error && !data && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {isObject(data) && (
        <>
          <p className="lead">
            This host advertises its capabilities to every client at{" "}
            <a href={`${hostURL}/.well-known/openwop`} target="_blank" rel="noreferrer">
              /.well-known/openwop
            </a>
            . The list is computed from the configuration. Model capabilities and substitutions are shown to signed-in users only.
          </p>
          <ModelGate document={data} />
          <Substitutions />
          <Kinds document={data} />
          <div className="families">
            {families(data).map((f) => (
              <Section key={f.name} family={f} />
            ))}
          </div>
          <details className="whole-document">
            <summary>Full document</summary>
            <JsonView value={data} open={1} />
          </details>
        </>
      )}
    </>
  );
}

/** Envelope kinds with versions and schemas. */
function Kinds({ document }: { document: { [name: string]: Json } }): ReactNode {
  const kinds = Array.isArray(document.supportedEnvelopes) ? document.supportedEnvelopes.filter((k) => typeof k === "string") : [];
  const versions = isObject(document.schemaVersions) ? document.schemaVersions : {};
  if (kinds.length === 0) return null;
  return (
    <section aria-labelledby="kinds">
      <h2 id="kinds">Envelope kinds</h2>
      <table className="kinds-table">
        <thead>
          <tr>
            <th scope="col">Kind</th>
            <th scope="col">Version</th>
            <th scope="col">Schema</th>
          </tr>
        </thead>
        <tbody>
          {kinds.map((kind) => (
            <tr key={kind}>
              <th scope="row">
                <code>{kind}</code>
              </th>
              <td>{versions[kind] === undefined ? <span className="dim">not listed</span> : String(versions[kind])}</td>
              <td>
                <a href={`${hostURL}/schemas/envelopes/${encodeURIComponent(kind)}.schema.json`} target="_blank" rel="noreferrer">
                  schema<span className="unseen"> of {kind}</span>
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Section({ family }: { family: Family }): ReactNode {
  return (
    <section className="family" aria-labelledby={`f-${family.name}`}>
      <h2 id={`f-${family.name}`}>
        {family.title}
        {family.supported !== undefined && (
          <span className={family.supported ? "status good" : "status idle"}>
            <Icon name={family.supported ? "check" : "ban"} />
            {family.supported ? "supported" : "not supported"}
          </span>
        )}
      </h2>
      <Members value={family.value} />
    </section>
  );
}

function Members({ value }: { value: Json }): ReactNode {
  if (!isObject(value)) return <Leaf value={value} />;
  const entries = Object.entries(value).filter(([name, v]) => name !== "supported" || typeof v !== "boolean");
  if (entries.length === 0) return null;
  return (
    <dl className="members">
      {entries.map(([name, v]) => (
        <div key={name}>
          <dt>{sentence(inWords(name))}</dt>
          <dd>
            <Members value={v} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Leaf({ value }: { value: Json }): ReactNode {
  if (Array.isArray(value)) {
    if (value.length === 0) return <span className="dim">none</span>;
    if (value.every((v) => !isObject(v) && !Array.isArray(v))) {
      return (
        <>
          {value.map((v) => (
            <code key={String(v)} className="chip">
              {String(v)}
            </code>
          ))}
        </>
      );
    }
    return <JsonView value={value} open={1} />;
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return value.toLocaleString("en");
  return <Text text={String(value)} />;
}
