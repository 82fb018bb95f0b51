// Which questions the inbox shows, and in which order.
import { approvers, kindLook, titleOf } from "./question";
import type { Item } from "./host";

export const sorts = { due: "Due first", oldest: "Oldest first", newest: "Newest first" } as const;
export const dues = { "": "Any due time", overdue: "Overdue", soon: "Due within an hour", day: "Due within a day", dated: "With a due time", none: "Without a due time" } as const;

export type Filter = { text: string; workflow: string; kind: string; who: string; assignee: string; due: keyof typeof dues; sort: keyof typeof sorts };

/** The values of `who` that name no approver. */
export const forMe = "me";
export const forOthers = "others";

/** The values of `assignee` that name no assignee. */
export const mine = "me";
export const unassigned = "none";

const names = ["text", "workflow", "kind", "who", "assignee", "due", "sort"] as const;

/** Reads a filter from the parameters of an address. Unknown values are ignored. */
export function filterOf(search: URLSearchParams): Filter {
  const get = (name: string): string => search.get(name) ?? "";
  const due = get("due");
  const sort = get("sort");
  return {
    text: get("text"),
    workflow: get("workflow"),
    kind: get("kind"),
    who: get("who"),
    assignee: get("assignee"),
    due: Object.hasOwn(dues, due) ? (due as Filter["due"]) : "",
    sort: Object.hasOwn(sorts, sort) ? (sort as Filter["sort"]) : "due",
  };
}

/** Adds a filter to the parameters of an address; defaults are left out. */
export function withFilter(search: URLSearchParams, filter: Filter): URLSearchParams {
  const out = new URLSearchParams(search);
  for (const name of names) {
    const value = filter[name];
    if (value === "" || (name === "sort" && value === "due")) out.delete(name);
    else out.set(name, value);
  }
  return out;
}

/** Counts the conditions of a filter. */
export const conditions = (f: Filter): number => [f.text, f.workflow, f.kind, f.who, f.assignee, f.due].filter((v) => v !== "").length;

const hour = 3_600_000;

function fitsDue(dueAt: string | undefined, due: Filter["due"], now: number): boolean {
  if (due === "") return true;
  if (due === "none" || dueAt === undefined) return due === "none" && dueAt === undefined;
  const left = Date.parse(dueAt) - now;
  return due === "overdue" ? left < 0 : due === "soon" ? left < hour : due === "day" ? left < 24 * hour : true;
}

function fitsAssignee(assignee: string | undefined, wanted: string, me: string | undefined): boolean {
  if (wanted === "") return true;
  return wanted === unassigned ? assignee === undefined : assignee === (wanted === mine ? me : wanted) && assignee !== undefined;
}

/** Reports whether a question matches a filter of the subject `me`. */
export function fits(item: Item, f: Filter, now: number, me?: string): boolean {
  const { question } = item;
  const words = [titleOf(question), item.workflowId, question.nodeId, approvers(question.data) ?? "", item.runId].join("\n").toLowerCase();
  return (
    f.text
      .toLowerCase()
      .split(/\s+/)
      .every((word) => words.includes(word)) &&
    (f.workflow === "" || item.workflowId === f.workflow) &&
    (f.kind === "" || kindLook(question).word === f.kind) &&
    (f.who === "" || (f.who === forMe ? item.answerable : f.who === forOthers ? !item.answerable : approvers(question.data) === f.who)) &&
    fitsAssignee(item.assignment?.assignee, f.assignee, me) &&
    fitsDue(question.dueAt, f.due, now)
  );
}

const asked = (i: Item): string => i.question.requestedAt ?? "";
const last = "\u{FFFF}"; // after every time

/** Returns the matching questions in the order of the filter. */
export function select(items: readonly Item[], f: Filter, now: number, me?: string): Item[] {
  return items
    .filter((i) => fits(i, f, now, me))
    .toSorted((a, b) => {
      if (f.sort === "due") {
        const first = (a.question.dueAt ?? last).localeCompare(b.question.dueAt ?? last);
        if (first !== 0) return first;
      }
      return f.sort === "oldest" ? asked(a).localeCompare(asked(b)) : asked(b).localeCompare(asked(a));
    });
}

const unique = (values: (string | undefined)[]): string[] => [...new Set(values.filter((v) => v !== undefined))].toSorted((a, b) => a.localeCompare(b));

/** Lists the different values of the questions, for the choices of a filter. */
export function choices(items: readonly Item[]): { workflows: string[]; kinds: string[]; approvers: string[]; assignees: string[] } {
  return {
    workflows: unique(items.map((i) => i.workflowId)),
    kinds: unique(items.map((i) => kindLook(i.question).word)),
    approvers: unique(items.map((i) => approvers(i.question.data))),
    assignees: unique(items.map((i) => i.assignment?.assignee)),
  };
}
