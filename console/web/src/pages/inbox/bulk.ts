import { idempotencyKey } from "../../api/client";
import { ApiError } from "../../api/errors";
import { sendTo, type Item } from "../../inbox/host";
import { allowsBulk, offered, titleOf } from "../../inbox/question";
import { isOver } from "../../inbox/useAnswer";
import { record, text } from "../../ladder/events";

export type BulkAction = "accept" | "reject";

/** Reports whether an item may be answered together with others. */
export const bulkable = (item: Item): boolean => item.answerable && allowsBulk(item.question);

export const offers = (item: Item, action: BulkAction): boolean => offered(item.question).includes(action);

/** The outcome for one question. */
export type Outcome = { item: Item; key: string; state: "waiting" | "answered" | "counted" | "closed" | "failed"; error?: { code: string; message: string } };

export const begin = (items: readonly Item[]): Outcome[] => items.map((item) => ({ item, key: idempotencyKey(), state: "waiting" }));

/**
 * Answers the waiting questions one after the other, and reports after each. The host refuses an answer whose question
 * is no longer open. After an error of the connection, the rest stays waiting, and a repeated call sends each answer
 * with the same key.
 */
export async function answerAll(outcomes: readonly Outcome[], action: BulkAction, comment: string, report: (all: Outcome[]) => void, stopped: () => boolean): Promise<void> {
  const all = [...outcomes];
  for (const [i, outcome] of all.entries()) {
    if (outcome.state !== "waiting") continue;
    if (stopped()) return;
    all[i] = { ...outcome, ...(await answerOne(outcome, action, comment)) };
    report([...all]);
  }
}

async function answerOne({ item, key }: Outcome, action: BulkAction, comment: string): Promise<Pick<Outcome, "state" | "error">> {
  try {
    const sent = await sendTo(item.runId, item.question)({ action, ...(comment ? { feedback: comment } : {}) }, key);
    return { state: text(record(record(sent).interrupt).outcome) === "counted" ? "counted" : "answered" };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return isOver(error) ? { state: "closed" } : { state: "failed", error: { code: error.code, message: error.message } };
  }
}

/** Counts the outcomes in words. */
export function summary(all: readonly Outcome[]): string {
  const count = (state: Outcome["state"]): number => all.filter((o) => o.state === state).length;
  return [
    `${count("answered")} answered`,
    ...(count("counted") > 0 ? [`${count("counted")} votes counted`] : []),
    ...(count("closed") > 0 ? [`${count("closed")} already closed or asked again`] : []),
    ...(count("failed") > 0 ? [`${count("failed")} failed`] : []),
    ...(count("waiting") > 0 ? [`${count("waiting")} left`] : []),
  ].join(", ");
}

export const nameOf = (item: Item): string => titleOf(item.question);
