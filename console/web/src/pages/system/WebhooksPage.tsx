import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent, type ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { api, body, idempotencyKey } from "../../api/client";
import type { components } from "../../api/schema";
import { useMay } from "../../api/session";
import events from "../../gen/events.json" with { type: "json" };
import { announce } from "../../ui/announce";
import { CopyButton } from "../../ui/CopyButton";
import { Dialog } from "../../ui/Dialog";
import { ErrorNote } from "../../ui/ErrorNote";
import { shortId } from "../../ui/Id";
import { Name, Text } from "../../ui/Text";
import { dateTime, dayTime } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { Lacks, SystemHead } from "./Tabs";

type Webhook = components["schemas"]["Webhook"];
type Delivery = components["schemas"]["WebhookDelivery"];

const looks: { [status: string]: string } = { active: "good", open: "ask", "half-open": "ask", failed: "bad" };

/** Counts the events that were never queued for a webhook. */
const dropped = ({ droppedEvents: n, lastDroppedAt: last }: Pick<Webhook, "droppedEvents" | "lastDroppedAt">): string =>
  `${n.toLocaleString("en")} ${n === 1 ? "event" : "events"} dropped${last ? `, last ${dateTime(last)}` : ""}`;

/** The tenant's webhooks, and the deliveries of one. */
export default function WebhooksPage(): ReactNode {
  useTitle("Webhooks");
  const may = useMay("webhooks:manage");
  return (
    <>
      <SystemHead title="Webhooks" />
      {may ? <Webhooks /> : <Lacks scope="webhooks:manage" />}
    </>
  );
}

function Webhooks(): ReactNode {
  const [search] = useSearchParams();
  const [adding, add] = useState(false);
  const { data, error, refetch } = useQuery({ queryKey: ["webhooks"], queryFn: ({ signal }) => body(api.GET("/v1/webhooks", { params: { query: { limit: 200 } }, signal })) });
  const wanted = search.get("webhook");
  const opened = data?.webhooks.find((w) => w.webhookId === wanted) ?? (wanted === null ? data?.webhooks[0] : undefined);
  return (
    <>
      <p className="system-tools">
        <button type="button" className="primary" onClick={() => add(true)}>
          Register a webhook…
        </button>
      </p>
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {data?.webhooks.length === 0 && (
        <div className="empty">
          <p>No webhooks.</p>
          <p>A webhook sends the events of runs to a server of yours, signed.</p>
        </div>
      )}
      {data && data.webhooks.length > 0 && (
        <div className="scroll" role="group" aria-label="Webhooks" tabIndex={0}>
          <table aria-label="Webhooks" className="audit">
            <thead>
              <tr>
                <th scope="col">URL</th>
                <th scope="col">Status</th>
                <th scope="col">Events</th>
                <th scope="col">Failures</th>
                <th scope="col">Created</th>
              </tr>
            </thead>
            <tbody>
              {data.webhooks.map((w) => (
                <tr key={w.webhookId}>
                  <th scope="row">
                    <Link href={`/system/webhooks?webhook=${encodeURIComponent(w.webhookId)}`} aria-current={w === opened ? "true" : undefined}>
                      <Name text={w.url} />
                    </Link>
                  </th>
                  <td>
                    <span className={`status ${looks[w.status] ?? "idle"}`}>{w.status}</span>
                    {w.openUntil && <span className="dim small"> paused until {dayTime(w.openUntil)}</span>}
                    {w.droppedEvents > 0 && <span className="status ask">{dropped(w)}</span>}
                  </td>
                  <td>
                    {w.events.join(", ")}
                    {w.tags.length > 0 && <span className="dim"> for the tags {w.tags.join(", ")}</span>}
                  </td>
                  <td>{w.consecutiveFailures > 0 ? `${w.consecutiveFailures} in a row, ${w.recentFailures} in 7 days` : w.recentFailures > 0 ? `${w.recentFailures} in 7 days` : "none"}</td>
                  <td className="nowrap">{dateTime(w.createdAt)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data?.nextCursor && <p className="dim small">Only the first {data.webhooks.length} webhooks are shown.</p>}
      {opened && <Opened key={opened.webhookId} webhook={opened} />}
      {adding && <Register onClose={() => add(false)} />}
    </>
  );
}

function Opened({ webhook }: { webhook: Webhook }): ReactNode {
  const [asked, ask] = useState<"rotate" | "delete">();
  const [status, setStatus] = useState<"failed" | "pending">("failed");
  return (
    <section aria-labelledby="deliveries" className="system-table">
      <h2 id="deliveries">
        Deliveries to <Name text={webhook.url} />
      </h2>
      {webhook.droppedEvents > 0 && (
        <p className="note ask">
          {dropped(webhook)}
          {webhook.firstDroppedAt && webhook.droppedEvents > 1 && ` (first ${dateTime(webhook.firstDroppedAt)})`}. They are never delivered: too many runs had pending deliveries. Read them from their runs.
        </p>
      )}
      <p className="dim small">
        Secret <code>{webhook.secretFingerprint}…</code>
        {webhook.previousSecretFingerprint && webhook.previousValidUntil && (
          <>
            , and the previous one <code>{webhook.previousSecretFingerprint}…</code> until {dayTime(webhook.previousValidUntil)}
          </>
        )}
      </p>
      <p className="system-tools">
        <select aria-label="Deliveries" value={status} onChange={(e) => setStatus(e.target.value as "failed" | "pending")}>
          <option value="failed">Failed: given up</option>
          <option value="pending">Pending: the next of each run</option>
        </select>
        <button type="button" onClick={() => ask("rotate")}>
          Rotate the secret…
        </button>
        <button type="button" className="danger" onClick={() => ask("delete")}>
          Delete the webhook…
        </button>
      </p>
      <Deliveries webhook={webhook} status={status} />
      {asked === "rotate" && <Rotate webhook={webhook} onClose={() => ask(undefined)} />}
      {asked === "delete" && <Delete webhook={webhook} onClose={() => ask(undefined)} />}
    </section>
  );
}

function Deliveries({ webhook: { webhookId }, status }: { webhook: Webhook; status: "failed" | "pending" }): ReactNode {
  const client = useQueryClient();
  const key = ["deliveries", webhookId, status];
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => body(api.GET("/v1/webhooks/{webhookId}/deliveries", { params: { path: { webhookId }, query: { status, limit: 200 } }, signal })),
  });
  const again = useMutation({
    mutationFn: async (d: Delivery) => {
      const sent = await body(api.POST("/v1/webhooks/{webhookId}:redeliver", { params: { path: { webhookId }}, body: { runId: d.runId, sequence: d.sequence } }));
      if (!sent.delivered) throw new Error(`Not delivered: ${sent.reason ?? "unknown"}`);
    },
    onSuccess: () => announce("Delivered"),
    onSettled: () => {
      void client.invalidateQueries({ queryKey: ["deliveries", webhookId] });
      void client.invalidateQueries({ queryKey: ["webhooks"] });
    },
  });
  return (
    <>
      {(error ?? again.error) && <ErrorNote error={(error ?? again.error) as Error} onRetry={() => void refetch()} />}
      {again.isSuccess && <p className="note good">Delivered.</p>}
      {data?.deliveries.length === 0 && <p className="dim">{status === "failed" ? "No delivery failed." : "Nothing is pending."}</p>}
      {data && data.deliveries.length > 0 && (
        <div className="scroll">
          <table aria-label={status === "failed" ? "Failed deliveries" : "Pending deliveries"}>
            <thead>
              <tr>
                <th scope="col">Run</th>
                <th scope="col">Event</th>
                <th scope="col">Attempts</th>
                <th scope="col">Reason</th>
                <th scope="col">{status === "failed" ? "Given up" : "Next attempt"}</th>
                {status === "failed" && (
                  <th scope="col">
                    <span className="unseen">Actions</span>
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {data.deliveries.map((d) => (
                <tr key={`${d.runId} ${d.sequence}`}>
                  <th scope="row">
                    <Link href={`/runs/${encodeURIComponent(d.runId)}?view=table&e=${d.sequence}`}>
                      {shortId(d.runId)} #{d.sequence}
                    </Link>
                  </th>
                  <td>{d.type}</td>
                  <td>{d.attempts}</td>
                  <td>
                    <Text text={d.reason ?? ""} />
                  </td>
                  <td>{status === "failed" ? d.failedAt && dateTime(d.failedAt) : d.nextAttemptAt ? dayTime(d.nextAttemptAt) : "now"}</td>
                  {status === "failed" && (
                    <td>
                      <button type="button" disabled={again.isPending} onClick={() => again.mutate(d)}>
                        Send again<span className="unseen">: {shortId(d.runId)} #{d.sequence}</span>
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p>
        <button type="button" disabled={isFetching} onClick={() => void refetch()}>
          Reload
        </button>
        {data?.nextCursor && <span className="dim small"> The first 200 are shown.</span>}
      </p>
    </>
  );
}

function Secret({ secret }: { secret: string }): ReactNode {
  return (
    <>
      <p className="note ask">This is the only time that the secret is shown.</p>
      <p>
        <code className="secret">{secret}</code> <CopyButton text={secret} what="the secret" />
      </p>
    </>
  );
}

const eventNames = Object.keys(events).toSorted();

const words = (s: string): string[] => s.split(/[\s,]+/).filter(Boolean);

function Register({ onClose }: { onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const id = useId();
  const [url, setURL] = useState("https://");
  const [chosen, choose] = useState("run.completed run.failed");
  const [tags, setTags] = useState("");
  const [key] = useState(idempotencyKey);
  const send = useMutation({
    mutationFn: () => body(api.POST("/v1/webhooks", { params: { header: { "Idempotency-Key": key } }, body: { url, events: words(chosen) as never, tags: words(tags) } })),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["webhooks"] }),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!send.isPending && !send.data) send.mutate();
  };
  return (
    <Dialog open onClose={onClose} title="Register a webhook">
      <form onSubmit={submit} className="form">
        {send.data ? (
          <Secret secret={send.data.secret} />
        ) : (
          <>
            <label htmlFor={`${id}url`}>URL</label>
            <input id={`${id}url`} type="url" required value={url} onChange={(e) => setURL(e.target.value)} />
            <label htmlFor={`${id}events`}>Events, separated by spaces</label>
            <input id={`${id}events`} required value={chosen} list={`${id}names`} autoComplete="off" onChange={(e) => choose(e.target.value)} />
            <datalist id={`${id}names`}>
              {eventNames.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </datalist>
            <label htmlFor={`${id}tags`}>Only runs with one of these tags, optional</label>
            <input id={`${id}tags`} value={tags} autoComplete="off" onChange={(e) => setTags(e.target.value)} />
          </>
        )}
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            {send.data ? "Close" : "Go back"}
          </button>
          {!send.data && (
            <button type="submit" className="primary" disabled={send.isPending}>
              Register
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function Rotate({ webhook: { webhookId }, onClose }: { webhook: Webhook; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => body(api.POST("/v1/webhooks/{webhookId}:rotate", { params: { path: { webhookId } }, body: {} })),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["webhooks"] }),
  });
  return (
    <Dialog open onClose={onClose} title="Rotate the secret">
      <div className="form">
        {send.data ? <Secret secret={send.data.secret} /> : <p>The host creates a new secret. The previous one also signs for one more day.</p>}
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            {send.data ? "Close" : "Go back"}
          </button>
          {!send.data && (
            <button type="button" className="primary" disabled={send.isPending} onClick={() => send.mutate()}>
              Rotate the secret
            </button>
          )}
        </div>
      </div>
    </Dialog>
  );
}

function Delete({ webhook: { webhookId, url }, onClose }: { webhook: Webhook; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: () => api.DELETE("/v1/webhooks/{webhookId}", { params: { path: { webhookId } } }),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["webhooks"] });
      onClose();
    },
  });
  return (
    <Dialog open onClose={onClose} title="Delete the webhook">
      <div className="form">
        <p>
          <Name text={url} /> gets no further events. Its pending deliveries are dropped.
        </p>
        {send.error && <ErrorNote error={send.error} />}
        <div className="form-end">
          <button type="button" onClick={onClose}>
            Go back
          </button>
          <button type="button" className="primary destructive" disabled={send.isPending} onClick={() => send.mutate()}>
            Delete the webhook
          </button>
        </div>
      </div>
    </Dialog>
  );
}
