import { describe, expect, test } from "vitest";
import { choices, conditions, filterOf, fits, select, withFilter } from "./filter";
import type { Item } from "./host";
import { questionOf } from "./question";

const now = Date.parse("2026-05-01T12:00:00.000Z");
const item = (id: string, requestedAt: string, data: object = {}, more: { timeoutMs?: number; workflowId?: string; answerable?: boolean } = {}): Item => ({
  runId: `run-${id}`,
  workflowId: more.workflowId ?? "refunds",
  answerable: more.answerable ?? true,
  question: questionOf({ kind: "approval", nodeId: "gate", interruptId: id, requestedAt, payload: { data: { title: `Refund ${id}?`, actions: ["accept"], ...data }, timeoutMs: more.timeoutMs } }),
});
const late = item("late", "2026-05-01T11:00:00.000Z", {}, { timeoutMs: 60_000 });
const soon = item("soon", "2026-05-01T11:30:00.000Z", {}, { timeoutMs: 3_600_000 });
const tomorrow = item("tomorrow", "2026-05-01T10:00:00.000Z", { approverGroupRefs: ["finance"] }, { timeoutMs: 86_400_000, answerable: false });
const open = item("open", "2026-05-01T09:00:00.000Z", {}, { workflowId: "hiring" });
const assigned = (assignee: string): Pick<Item, "assignment"> => ({ assignment: { assignee, assignedBy: "eve", assignedAt: "2026-05-01T11:45:00.000Z" } });
Object.assign(soon, assigned("ada"));
Object.assign(tomorrow, assigned("ben"));
const all = [open, tomorrow, soon, late];
const ids = (items: Item[]): string[] => items.map((i) => i.question.interruptId);
const filter = (query: string) => filterOf(new URLSearchParams(query));

describe("the filter of the inbox", () => {
  test.each([
    ["", ["late", "soon", "tomorrow", "open"]],
    ["sort=oldest", ["open", "tomorrow", "late", "soon"]],
    ["sort=newest", ["soon", "late", "tomorrow", "open"]],
    ["sort=color", ["late", "soon", "tomorrow", "open"]],
    ["due=overdue", ["late"]],
    ["due=soon", ["late", "soon"]],
    ["due=day", ["late", "soon", "tomorrow"]],
    ["due=dated", ["late", "soon", "tomorrow"]],
    ["due=none", ["open"]],
    ["who=me", ["late", "soon", "open"]],
    ["who=others", ["tomorrow"]],
    ["who=the+group+finance", ["tomorrow"]],
    ["assignee=me", ["soon"]],
    ["assignee=none", ["late", "open"]],
    ["assignee=ben", ["tomorrow"]],
    ["assignee=eve", []],
    ["workflow=hiring", ["open"]],
    ["kind=Approval&text=REFUND+late", ["late"]],
    ["kind=Form", []],
  ])("%s", (query, want) => {
    expect(ids(select(all, filter(query), now, "ada"))).toEqual(want);
  });

  test("is in the address, without its defaults", () => {
    const f = { ...filter("due=soon&who=me"), text: "a b" };
    const search = withFilter(new URLSearchParams("i=1&workflow=x"), f);
    expect(search.toString()).toBe("i=1&text=a+b&who=me&due=soon");
    expect(filterOf(search)).toEqual(f);
    expect(conditions(f)).toBe(3);
  });

  test("finds a question by its run", () => {
    expect(fits(late, filter("text=run-late"), now)).toBe(true);
  });

  test("offers what the questions have", () => {
    expect(choices(all)).toEqual({ workflows: ["hiring", "refunds"], kinds: ["Approval"], approvers: ["the group finance"], assignees: ["ada", "ben"] });
  });
});
