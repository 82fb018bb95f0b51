// Questions of a run, as the pages read them (OpenWOP host contract §6).
import type { Provenance } from "../a2ui/SurfaceForm";
import { number, record, text, texts } from "../ladder/events";
import type { IconName } from "../ui/Icon";
import { lookup } from "../api/lookup";

export interface Votes {
  accepts: number;
  rejects: number;
  required: number;
}

export interface Question {
  kind: string;
  nodeId: string;
  interruptId: string;
  data: Record<string, unknown>;
  resumeSchema?: Record<string, unknown> | boolean | undefined;
  requestedAt?: string | undefined;
  /** Deadline of the answer; undefined means none. */
  dueAt?: string | undefined;
  votes?: Votes | undefined;
  level: number;
  /** The question is incomplete: its surface is still being written. */
  partial: boolean;
}

/** The props of the form for one kind of question. */
export interface KindProps {
  question: Question;
  /** Why the question cannot be answered here; undefined means it can. */
  blocked: string | undefined;
  busy: boolean;
  /** The host's validation errors, by JSON Pointer into the answer. */
  places: Map<string, string>;
  /** The question contains untrusted content. */
  untrusted?: boolean | undefined;
  provenance: Provenance;
  answer: (resumeValue: unknown) => void;
}

/** Parses the interrupt of a snapshot or of the list of questions. */
export function questionOf(interrupt: unknown): Question {
  const i = record(interrupt);
  const p = record(i.payload);
  return {
    kind: text(i.kind) ?? text(p.kind) ?? "custom",
    nodeId: text(i.nodeId) ?? "",
    interruptId: text(i.interruptId) ?? "",
    data: record(p.data),
    resumeSchema: schemaOf(p.resumeSchema),
    requestedAt: text(i.requestedAt),
    dueAt: due(text(i.requestedAt), number(p.timeoutMs)),
    votes: votesOf(i.votes, record(p.data)),
    level: number(record(i.escalation).level) ?? 0,
    partial: isPartial(p.data),
  };
}

/** Parses the inspection of a token. */
export function questionOfToken(shown: unknown): Question & { resolved: boolean; expiresAt: string | undefined } {
  const s = record(shown);
  const data = record(s.data);
  return {
    kind: text(s.kind) ?? "custom",
    nodeId: "",
    interruptId: "",
    data,
    level: 0,
    partial: isPartial(data),
    resumeSchema: schemaOf(s.resumeSchema),
    requestedAt: text(s.requestedAt),
    dueAt: due(text(s.requestedAt), number(s.timeoutMs)),
    votes: votesOf(s.votes, data),
    resolved: s.resolved === true,
    expiresAt: text(s.expiresAt),
  };
}

/** A partial surface is marked like its envelope (OpenWOP envelope contract §2, §18). */
const isPartial = (data: unknown): boolean => record(record(data).partial).isPartial === true;

function schemaOf(v: unknown): Question["resumeSchema"] {
  return typeof v === "boolean" ? v : v === undefined || v === null ? undefined : record(v);
}

function due(requestedAt: string | undefined, timeoutMs: number | undefined): string | undefined {
  if (requestedAt === undefined || !timeoutMs) return undefined;
  return new Date(Date.parse(requestedAt) + timeoutMs).toISOString();
}

/** Returns the votes of a quorum. If the host does not report them, only the required number is known. */
function votesOf(votes: unknown, data: Record<string, unknown>): Votes | undefined {
  const required = number(data.requiredApprovals) ?? 1;
  if (votes === undefined) return required > 1 ? { accepts: -1, rejects: 0, required } : undefined;
  const v = record(votes);
  return { accepts: number(v.accepts) ?? 0, rejects: number(v.rejects) ?? 0, required: number(v.required) ?? required };
}

export const votesInWords = (v: Votes): string =>
  v.accepts < 0 ? `${v.required} approvals are needed` : `${v.accepts} of ${v.required}${v.rejects > 0 ? `, ${v.rejects} against` : ""}`;

export const actions = ["accept", "reject", "refine", "edit-accept", "ask"] as const;
export type Action = (typeof actions)[number];

/** Returns the actions of a gate, in the protocol's order. */
export const offered = (q: Question): Action[] => actions.filter((a) => texts(q.data.actions).includes(a));

/** Reports whether a question may be accepted or rejected together with others: its workflow allows it. */
export const allowsBulk = (q: Question): boolean => q.kind === "approval" && q.data.bulkAnswers === true && !q.partial;

/** Names the approvers; undefined if any key with the scope may answer. */
export function approvers(data: Record<string, unknown>): string | undefined {
  const named = [
    ...texts(data.approversList),
    ...texts(data.approverGroupRefs).map((g) => `the group ${g}`),
    ...texts(data.approverRoleRefs).map((r) => `the role ${r}`),
  ];
  return named.length === 0 ? undefined : named.join(", ");
}

type Look = { word: string; icon: IconName };

const kinds: Record<string, Look> = {
  approval: { word: "Approval", icon: "shield" },
  clarification: { word: "Questions", icon: "question" },
  "external-event": { word: "External event", icon: "swap" },
  "low-confidence": { word: "Low confidence", icon: "bang" },
  custom: { word: "Answer", icon: "question" },
};

export const kindLook = (q: Question): Look => (isForm(q) ? { word: "Form", icon: "question" } : (lookup(kinds, q.kind) ?? { word: q.kind, icon: "question" }));

/** Reports whether a question is a model's, which can be declined: its resumeSchema says so. */
export function declinable(q: Question): boolean {
  const ways = record(q.resumeSchema).anyOf;
  return q.kind === "clarification" && Array.isArray(ways) && ways.some((way) => record(record(record(way).properties).declined).const === true);
}

export const isForm = (q: Question): boolean => q.kind === "custom" && q.data.customKind === "ui.a2ui-surface";

/** Returns the title of a question. */
export function titleOf(q: Question): string {
  if (q.kind === "approval") return text(q.data.title) ?? "Approval";
  if (q.kind === "external-event") return `Waiting for the event ${text(q.data.eventType) ?? ""}`.trim();
  if (q.kind === "low-confidence") return `${text(q.data.agentId) ?? "An agent"} reported low confidence`;
  if (q.kind === "clarification") {
    const list = Array.isArray(q.data.questions) ? q.data.questions : [];
    const first = text(record(list[0]).question) ?? "Questions";
    return list.length > 1 ? `${first} and ${list.length - 1} more` : first;
  }
  if (isForm(q)) {
    const surface = record(record(q.data.payload).surface);
    const headed = Array.isArray(surface.components) ? surface.components.map((c) => text(record(c).text)).find(Boolean) : undefined;
    return text(surface.title) ?? (headed ? `A form: ${headed.slice(0, 80)}` : "A form to fill in");
  }
  return text(q.data.title) ?? text(q.data.customKind) ?? "A question";
}
