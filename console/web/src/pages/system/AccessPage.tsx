import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api, bodyAs } from "../../api/client";
import type { Json } from "../../api/json";
import { useConfig, useMay } from "../../api/session";
import { record, text } from "../../ladder/events";
import { ErrorNote } from "../../ui/ErrorNote";
import { Name } from "../../ui/Text";
import { dateTime } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { Lacks, SystemHead } from "./Tabs";
import { usesIn } from "./uses";

const permits: { [scope: string]: string } = {
  "manifest:read": "read workflows, models and capabilities",
  "runs:create": "start, fork and retry runs",
  "runs:read": "read runs and their events",
  "runs:cancel": "cancel, pause and resume runs",
  "runs:delete": "delete runs that have ended",
  "runs:archive": "archive runs that have ended",
  "runs:hold": "set and remove legal holds",
  "tenant:erase": "erase everything of the tenant",
  "approvals:respond": "answer questions of runs",
  "workflows:write": "register and delete workflows",
  "audit:read": "read and verify the audit log",
  "webhooks:manage": "register, change and delete webhooks",
  "artifacts:read": "read assets of runs",
  "system:read": "read the status of the installation",
  "tenants:read": "read the statistics of all tenants",
  "packs:publish": "reserved by the protocol",
  "packs:yank": "reserved by the protocol",
  "packs:yank-revert": "reserved by the protocol",
  "workspace:read": "reserved by the protocol",
  "workspace:write": "reserved by the protocol",
};

/** Who is signed in with which scopes, and which keys were used. */
export default function AccessPage(): ReactNode {
  useTitle("Access");
  const { session } = useConfig();
  const audits = useMay("audit:read");
  return (
    <>
      <SystemHead title="Access" />
      {session ? (
        <section aria-labelledby="me" className="system-table">
          <h2 id="me">You are signed in</h2>
          <dl className="members">
            <div>
              <dt>Tenant</dt>
              <dd>{session.tenant}</dd>
            </div>
            <div>
              <dt>Key</dt>
              <dd>
                <code>{session.keyId}</code>
              </dd>
            </div>
            <div>
              <dt>User</dt>
              <dd>{session.user ?? "None: the key is bound to no person"}</dd>
            </div>
          </dl>
          <h3>Scopes of this key</h3>
          <Scopes of={session.scopes} />
        </section>
      ) : (
        <p className="note idle">This host has no sign-in.</p>
      )}
      <section aria-labelledby="keys" className="system-table">
        <h2 id="keys">Keys in use</h2>
        {audits ? <Uses /> : <Lacks scope="audit:read" />}
      </section>
    </>
  );
}

function Scopes({ of }: { of: string[] }): ReactNode {
  return (
    <ul className="scopes">
      {of.toSorted().map((scope) => (
        <li key={scope}>
          <code>{scope}</code> <span className="dim">{permits[scope]}</span>
        </li>
      ))}
    </ul>
  );
}

function Uses(): ReactNode {
  const { data, error, refetch } = useQuery({
    queryKey: ["audit", "uses"],
    queryFn: ({ signal }) => bodyAs<{ entries: Json[] }>(api.GET("/v1/audit", { params: { query: { newestFirst: true, limit: 200 } }, signal })),
  });
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return null;
  const uses = usesIn(data.entries);
  const oldest = text(record(data.entries.at(-1)).occurredAt);
  return (
    <>
      <p className="dim small">
        From the latest entries of the <Link href="/system/audit?action=key.used">audit log</Link>
        {oldest && `, since ${dateTime(oldest)}`}. Uses are recorded once a minute.
      </p>
      {uses.length === 0 && <p className="dim">No use is recorded yet.</p>}
      {uses.length > 0 && (
        <div className="scroll" role="group" aria-labelledby="keys" tabIndex={0}>
          <table aria-labelledby="keys">
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Last use</th>
                <th scope="col">Calls by scope</th>
              </tr>
            </thead>
            <tbody>
              {uses.map((use) => (
                <tr key={use.key}>
                  <th scope="row">
                    <code>
                      <Name text={use.key} />
                    </code>
                  </th>
                  <td className="nowrap">{dateTime(use.at)}</td>
                  <td>
                    {[...use.scopes].map(([scope, { granted, denied }]) => (
                      <span key={scope} className="chip">
                        {scope} {granted.toLocaleString("en")}
                        {denied > 0 && <span className="bad-text">, {denied.toLocaleString("en")} denied</span>}
                      </span>
                    ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

