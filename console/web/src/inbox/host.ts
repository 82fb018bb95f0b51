// Requests about questions, and the channel that notifies other tabs of answers.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, bodyAs, fetchJson } from "../api/client";
import type { Provenance } from "../a2ui/SurfaceForm";
import { isStatus } from "../api/errors";
import type { Json } from "../api/json";
import type { RunEvent, RunRow } from "../api/model";
import { record, text } from "../ladder/events";
import { asks, useRunFeed } from "./feed";
import type { RunLog } from "../live/runLog";
import type { Assignment } from "./assign";
import { questionOf, type Question } from "./question";
import { notifyTabs, onChangeElsewhere } from "./tabs";
import type { Elsewhere, Send } from "./useAnswer";

export interface Item {
  runId: string;
  workflowId: string;
  question: Question;
  /** This key may answer it. */
  answerable: boolean;
  /** The recorded answer; undefined while the question is open. */
  answer?: Elsewhere | undefined;
  /** Who takes care of the question; undefined means no one. */
  assignment?: Assignment | undefined;
}

type Row = { runId: string; workflowId: string; interrupt?: Json; answerable?: boolean; answer?: { at: string; by?: string; action?: string; value?: Json }; assignment?: Assignment };
type Page = { interrupts?: Row[]; nextCursor?: string };

const key = ["interrupts"] as const;
// Votes create no event, so questions with a quorum are polled. Without a feed, all questions are polled.
const refresh = 5000;
// Assignees create no event either.
const refreshAssignees = 30_000;
const changeEvery = 300;
/** The most questions that the inbox loads. */
export const mostItems = 2000;

const itemsOf = (page: Page): Item[] =>
  (page.interrupts ?? []).map((i) => ({ runId: i.runId, workflowId: i.workflowId, question: questionOf(i.interrupt), answerable: i.answerable ?? false, answer: i.answer, assignment: i.assignment }));

async function list(query: string, signal?: AbortSignal): Promise<Item[]> {
  const out: Item[] = [];
  for (let cursor = ""; ; ) {
    const page = await fetchJson<Page & Json>(`/v1/interrupts?limit=200${query}${cursor && `&cursor=${encodeURIComponent(cursor)}`}`, signal ? { signal } : {});
    out.push(...itemsOf(page));
    if (!page.nextCursor || out.length >= mostItems) return out;
    cursor = page.nextCursor;
  }
}

export interface Inbox {
  /** All questions of the tenant's runs; undefined until loaded. */
  items: Item[] | undefined;
  /** The key lacks the scope for answers. */
  reader: boolean;
  error: Error | null;
  at: number;
  refetch: () => void;
}

/** Returns the open questions, of all workflows or one, updated while the page is visible. */
export function useInbox(live: boolean, workflowId = ""): Inbox {
  const client = useQueryClient();
  const again = (): void => void client.invalidateQueries({ queryKey: [...key, "open"] });
  const [polls, setPolls] = useState(false);
  const interval = live && (polls ? refresh : refreshAssignees);
  const of = workflowId && `&workflowId=${encodeURIComponent(workflowId)}`;
  const all = useQuery({ queryKey: [...key, "open", "all", workflowId], queryFn: ({ signal }) => list(of, signal), refetchInterval: interval, staleTime: 1000 });
  const reader = isStatus(all.error, 403);
  const waiting = useQuery({ queryKey: [...key, "open", "waiting"], queryFn: ({ signal }) => waitingRuns(signal), enabled: reader, refetchInterval: reader ? interval : false, staleTime: 1000 });
  const items = reader ? waiting.data : all.data;
  const concerns = (row: RunRow): boolean => asks(row) || items === undefined || items.some((i) => i.runId === row.runId || i.question.partial);
  const fed = useRunFeed(live, changeEvery, concerns, again);
  const needed = !fed || (items?.some((i) => i.question.votes !== undefined) ?? false);
  if (needed !== polls) setPolls(needed);
  useEffect(
    () =>
      onChangeElsewhere(() => {
        void client.invalidateQueries({ queryKey: key });
      }),
    [client],
  );
  return {
    items,
    reader,
    error: reader ? waiting.error : all.error,
    at: all.dataUpdatedAt,
    refetch: () => void client.invalidateQueries({ queryKey: key }),
  };
}

/** Returns the questions that were answered on a day in UTC, the latest first. */
export function useAnswered(day: string): { items: Item[] | undefined; error: Error | null; refetch: () => void } {
  const { data, error, refetch } = useQuery({
    queryKey: [...key, "answered", day],
    queryFn: ({ signal }) => list(`&answeredOn=${encodeURIComponent(day)}`, signal),
    staleTime: 1000,
  });
  const items = data?.toSorted((a, b) => (b.answer?.at ?? "").localeCompare(a.answer?.at ?? ""));
  return { items, error, refetch: () => void refetch() };
}

// A key without the scope reads the questions from the logs of the waiting runs.
async function waitingRuns(signal: AbortSignal): Promise<Item[]> {
  const out: Item[] = [];
  for (const status of ["waiting-approval", "waiting-input", "waiting-external"]) {
    const { runs } = await fetchJson<{ runs: { runId: string; workflowId: string }[] }>(`/v1/runs?status=${status}&limit=20`, { signal });
    const logs = await Promise.all(runs.map((r) => eventsOf(r.runId, signal)));
    runs.forEach(({ runId, workflowId }, i) => {
      for (const question of openIn(logs[i] ?? [])) out.push({ runId, workflowId, question, answerable: false });
    });
  }
  return out;
}

const page = 1000;

async function eventsOf(runId: string, signal?: AbortSignal): Promise<RunEvent[]> {
  const out: RunEvent[] = [];
  for (;;) {
    const answer = await fetchJson<{ events: RunEvent[] }>(`/v1/runs/${encodeURIComponent(runId)}/events/poll?lastSequence=${out.length - 1}&limit=${page}`, signal ? { signal } : {});
    out.push(...answer.events);
    if (answer.events.length < page) return out;
  }
}

/** Returns the open questions of a log. */
export function openIn(events: readonly RunEvent[]): Question[] {
  const open = new Map<unknown, Question>();
  for (const e of events) {
    const p = record(e.payload);
    if (e.type === "interrupt.requested") open.set(p.interruptId, questionOf({ ...p, payload: p }));
    if (e.type === "interrupt.resolved") open.delete(p.interruptId);
    if (/^(node\.(completed|failed|cancelled)|run\.(completed|failed|cancelled))$/.test(e.type)) {
      for (const [id, q] of open) if (e.type.startsWith("run.") || q.nodeId === e.nodeId) open.delete(id);
    }
  }
  return [...open.values()];
}

/** Sends an answer to the shown question. The host refuses it if the node has asked another one since. */
export function sendTo(runId: string, { nodeId, interruptId }: Pick<Question, "nodeId" | "interruptId">): Send {
  return async (resumeValue, idempotencyKey) => {
    const sent = await bodyAs<Json>(
      api.POST("/v1/runs/{runId}/interrupts/{nodeId}", {
        params: { path: { runId, nodeId } },
        headers: { "Idempotency-Key": idempotencyKey, ...(interruptId ? { "Waybill-Interrupt-Id": interruptId } : {}) },
        body: { resumeValue, runId: undefined, nodeId: undefined } as never,
      }),
    );
    notifyTabs();
    return sent;
  };
}

/** Returns the resolution of a question from the run's events. */
export function resolutionIn(events: readonly RunEvent[], interruptId: string): Elsewhere | undefined {
  const e = events.findLast((x) => x.type === "interrupt.resolved" && record(x.payload).interruptId === interruptId);
  if (!e) return undefined;
  const p = record(e.payload);
  const action = text(record(p.resumeValue).action) ?? text(p.reason) ?? text(p.outcome);
  return { by: text(p.resolvedBy), action, at: text(p.resolvedAt) ?? e.timestamp, value: p.resumeValue as Json | undefined };
}

/** Reports whether a question contains untrusted content. */
export const isUntrusted = (log: RunLog, interruptId: string): boolean =>
  log.events.some((e) => e.type === "interrupt.requested" && e.contentTrust === "untrusted" && record(e.payload).interruptId === interruptId);

/** Returns a question of a log, open or not. */
export function questionIn(events: readonly RunEvent[], interruptId: string): Question | undefined {
  const p = record(events.find((e) => e.type === "interrupt.requested" && record(e.payload).interruptId === interruptId)?.payload);
  return p.interruptId === undefined ? undefined : questionOf({ ...p, payload: p });
}

/** Reads the log of the run and returns the resolution. */
export async function findResolution(runId: string, interruptId: string): Promise<Elsewhere | undefined> {
  return resolutionIn(await eventsOf(runId), interruptId);
}

/** Returns the origin of a form: the model that wrote the run's last surface, if any. */
export function provenanceIn(events: readonly RunEvent[], nodeId: string): Provenance {
  const e = events.findLast((x) => x.type === "artifact.created" && record(x.payload).artifactType === "ui.a2ui-surface");
  if (!e) return { nodeId, written: false };
  const usage = events.findLast((x) => x.type === "provider.usage" && x.nodeId === e.nodeId && x.sequence < e.sequence);
  const model = usage && `${text(record(usage.payload).provider) ?? ""}·${text(record(usage.payload).model) ?? ""}`;
  return { nodeId: e.nodeId, written: true, model, trust: e.contentTrust };
}
