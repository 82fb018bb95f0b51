import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { api, body, bodyAs } from "../../api/client";
import type { Json } from "../../api/json";
import { useMay } from "../../api/session";
import { number, record, text } from "../../ladder/events";
import { ErrorNote } from "../../ui/ErrorNote";
import { Icon } from "../../ui/Icon";
import { JsonView } from "../../ui/JsonView";
import { Name } from "../../ui/Text";
import { dateTime } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { Lacks, SystemHead } from "./Tabs";

type Page = { entries: Json[]; nextCursor?: string };

/** The tenant's audit log, the newest entries first, and its verification. */
export default function AuditPage(): ReactNode {
  useTitle("Audit log");
  const may = useMay("audit:read");
  return (
    <>
      <SystemHead title="Audit log" />
      {may ? (
        <>
          <Verification />
          <Entries />
        </>
      ) : (
        <Lacks scope="audit:read" />
      )}
    </>
  );
}

function Verification(): ReactNode {
  const verify = useMutation({ mutationFn: () => body(api.GET("/v1/audit/verify")) });
  const { data } = verify;
  const anomalies = data?.anomalies ?? [];
  return (
    <section aria-label="Verification" className="verification">
      <button type="button" disabled={verify.isPending} onClick={() => verify.mutate()}>
        {verify.isPending ? "Verifying…" : "Verify the log"}
      </button>
      {verify.error && <ErrorNote error={verify.error} />}
      {data && (
        <p className={data.chainValid && data.checkpointsValid ? "note good" : "note bad"} role="status">
          <strong>{data.chainValid && data.checkpointsValid ? "The log is intact." : "The log was changed."}</strong> Entries {data.fromSeq.toLocaleString("en")} to {data.toSeq.toLocaleString("en")},{" "}
          {data.checkpoints.length.toLocaleString("en")} signed {data.checkpoints.length === 1 ? "checkpoint" : "checkpoints"}.
          {!data.chainValid && ` The chain of entries is broken${anomalies.length > 0 ? ` at ${anomalies.slice(0, 10).map((a) => a.atSeq).join(", ")}` : ""}.`}
          {!data.checkpointsValid && " A checkpoint does not match the entries."}
        </p>
      )}
    </section>
  );
}

function Entries(): ReactNode {
  const [search, setSearch] = useSearchParams();
  const action = search.get("action") ?? "";
  const query = useInfiniteQuery({
    queryKey: ["audit"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => bodyAs<Page>(api.GET("/v1/audit", { params: { query: { newestFirst: true, limit: 100, ...(pageParam ? { cursor: pageParam } : {}) } }, signal })),
    getNextPageParam: (last) => last.nextCursor,
    refetchOnMount: "always",
  });
  const entries = (query.data?.pages.flatMap((page) => page.entries) ?? []).map(record);
  const actions = [...new Set(entries.map((e) => text(e.action) ?? ""))].toSorted();
  const shown = action ? entries.filter((e) => e.action === action) : entries;
  if (query.error && entries.length === 0) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <>
      <p className="system-tools">
        <select aria-label="Action" value={action} onChange={(e) => setSearch(e.target.value ? { action: e.target.value } : {})}>
          <option value="">All actions</option>
          {(action && !actions.includes(action) ? [...actions, action] : actions).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
        <button type="button" disabled={query.isFetching} onClick={() => void query.refetch()}>
          Reload
        </button>
        <span className="dim small">
          {shown.length.toLocaleString("en")} {shown.length === 1 ? "entry" : "entries"} loaded
        </span>
      </p>
      {query.isSuccess && entries.length === 0 && <p className="empty">The audit log has no entries.</p>}
      {shown.length > 0 && (
        <div className="scroll" role="group" aria-label="Audit entries" tabIndex={0}>
          <table aria-label="Audit entries" className="audit">
            <thead>
              <tr>
                <th scope="col">No.</th>
                <th scope="col">Time</th>
                <th scope="col">Action</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col">Details</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((e) => (
                <Entry key={number(e.atSequence)} entry={e} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {query.hasNextPage && (
        <p>
          <button type="button" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older entries
          </button>
        </p>
      )}
    </>
  );
}

function Entry({ entry }: { entry: Record<string, unknown> }): ReactNode {
  const target = text(entry.target) ?? "";
  const run = /^runs\/([^/]+)$/.exec(target)?.[1];
  const details = record(entry.details);
  const at = text(entry.occurredAt) ?? "";
  return (
    <tr>
      <td>{number(entry.atSequence)?.toLocaleString("en")}</td>
      <td className="nowrap">
        <time dateTime={at}>{dateTime(at)}</time>
      </td>
      <td>
        <code>{text(entry.action)}</code>
      </td>
      <td>
        <Name text={text(entry.actor) ?? ""} />
      </td>
      <td>{run ? <Link href={`/runs/${encodeURIComponent(run)}`}><Name text={target} /></Link> : <Name text={target} />}</td>
      <td>
        {Object.keys(details).length > 0 && (
          <details>
            <summary>
              <Icon name="data" /> Show
            </summary>
            <JsonView value={details as Json} open={2} />
          </details>
        )}
      </td>
    </tr>
  );
}
