import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { api, body } from "../../api/client";
import { useMay } from "../../api/session";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name, Text } from "../../ui/Text";
import { dateTime } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { Lacks, SystemHead } from "./Tabs";

/** How long runs are kept, what is erased next, and the runs with a legal hold. */
export default function DataPage(): ReactNode {
  useTitle("Retention and holds");
  const reader = useMay("runs:read");
  return (
    <>
      <SystemHead title="Retention and holds" />
      {reader ? (
        <>
          <Retention />
          <Holds />
        </>
      ) : (
        <Lacks scope="runs:read" />
      )}
    </>
  );
}

const days = (from: number, to: number | undefined): string => (to === undefined ? `${from} days and older` : from === 0 ? `under ${to} ${to === 1 ? "day" : "days"}` : `${from} to ${to} days`);

const count = (n: number): string => n.toLocaleString("en");

function Retention(): ReactNode {
  const { data, error, refetch } = useQuery({ queryKey: ["retention"], queryFn: ({ signal }) => body(api.GET("/v1/retention", { signal })) });
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return null;
  return (
    <>
      <div className="families system">
        <section className="family" aria-labelledby="retention">
          <h2 id="retention">Retention</h2>
          <dl className="members">
            <div>
              <dt>Kept after their end</dt>
              <dd>{data.retention}</dd>
            </div>
            <div>
              <dt>Ended runs</dt>
              <dd>{count(data.runs)}</dd>
            </div>
            <div>
              <dt>Due to be erased</dt>
              <dd>{count(data.due)}</dd>
            </div>
            <div>
              <dt>Due within a day</dt>
              <dd>{count(data.dueNextDay)}</dd>
            </div>
            <div>
              <dt>With a legal hold</dt>
              <dd>{count(data.holds)}</dd>
            </div>
          </dl>
        </section>
        <section className="family" aria-labelledby="ages">
          <h2 id="ages">Ended runs by age</h2>
          <dl className="members">
            {data.ages.map((age) => (
              <div key={age.fromDays}>
                <dt>{days(age.fromDays, age.toDays)}</dt>
                <dd>{count(age.runs)}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
      {data.workflows.length > 0 && (
        <section aria-labelledby="byworkflow" className="system-table">
          <h2 id="byworkflow">By workflow</h2>
          <div className="scroll" role="group" aria-labelledby="byworkflow" tabIndex={0}>
            <table aria-labelledby="byworkflow">
              <thead>
                <tr>
                  <th scope="col">Workflow</th>
                  <th scope="col">Kept for</th>
                  <th scope="col">Set by</th>
                  <th scope="col">Ended runs</th>
                  <th scope="col">Due</th>
                  <th scope="col">Due within a day</th>
                  <th scope="col">Oldest end</th>
                </tr>
              </thead>
              <tbody>
                {data.workflows.map((w) => (
                  <tr key={w.workflowId}>
                    <th scope="row">
                      <Link href={`/?filter=${encodeURIComponent(`workflow:${w.workflowId}`)}`}>
                        <Name text={w.workflowId} />
                      </Link>
                    </th>
                    <td>{w.retention}</td>
                    <td>{w.source}</td>
                    <td>{count(w.runs)}</td>
                    <td>{count(w.due)}</td>
                    <td>{count(w.dueNextDay)}</td>
                    <td className="nowrap">{w.oldest ? dateTime(w.oldest) : <span className="dim">–</span>}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          {data.more && <p className="dim small">There are more workflows, which are not counted.</p>}
        </section>
      )}
    </>
  );
}

function Holds(): ReactNode {
  const client = useQueryClient();
  const may = useMay("runs:hold");
  const query = useInfiniteQuery({
    queryKey: ["holds"],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => body(api.GET("/v1/holds", { params: { query: pageParam ? { cursor: pageParam } : {} }, signal })),
    getNextPageParam: (last) => last.nextCursor,
    refetchOnMount: "always",
  });
  const release = useMutation({
    mutationFn: (runId: string) => api.DELETE("/v1/runs/{runId}/hold", { params: { path: { runId } } }),
    onSettled: () => void client.invalidateQueries({ queryKey: ["holds"] }),
  });
  const holds = query.data?.pages.flatMap((page) => page.holds) ?? [];
  return (
    <section aria-labelledby="holds" className="system-table">
      <h2 id="holds">Legal holds</h2>
      <p className="dim small">A run with a hold is never erased: not by retention, and not on request. Set a hold on the page of a run.</p>
      {(query.error ?? release.error) && <ErrorNote error={(query.error ?? release.error) as Error} onRetry={() => void query.refetch()} />}
      {query.isSuccess && holds.length === 0 && <p className="dim">No run has a hold.</p>}
      {holds.length > 0 && (
        <div className="scroll" role="group" aria-labelledby="holds" tabIndex={0}>
          <table aria-labelledby="holds">
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">Reason</th>
                <th scope="col">Set by</th>
                <th scope="col">Since</th>
                <th scope="col">
                  <span className="unseen">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {holds.map((hold) => (
                <tr key={hold.runId}>
                  <th scope="row">
                    <Link href={`/runs/${encodeURIComponent(hold.runId)}`}>{shortId(hold.runId)}</Link>
                  </th>
                  <td>
                    <Text text={hold.reason} />
                  </td>
                  <td>
                    <Name text={hold.heldBy} />
                  </td>
                  <td className="nowrap">{dateTime(hold.since)}</td>
                  <td>
                    {may && (
                      <button type="button" disabled={release.isPending} onClick={() => release.mutate(hold.runId)}>
                        Remove the hold<span className="unseen"> of {shortId(hold.runId)}</span>
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {query.hasNextPage && (
        <button type="button" onClick={() => void query.fetchNextPage()}>
          Show more holds
        </button>
      )}
    </section>
  );
}
