// The steps of a run, from its log and the answers of its models.
import { integerOf } from "../../api/json";
import type { RunEvent } from "../../api/model";
import { columnsOf, decisive } from "../../ladder/columns";
import { record, text } from "../../ladder/events";
import type { Execution, Story } from "../../ladder/model";

export type Step = {
  sequence: number;
  at: string;
  nodeId?: string | undefined;
  /** The step in one sentence. */
  words: string;
  tone: Story["tone"];
  code?: string | undefined;
  /** Input and output tokens; undefined without model calls or reported usage. */
  tokens?: readonly [bigint, bigint] | undefined;
  /** Key of the deciding attempt. */
  envelope?: string | undefined;
};

/** Returns the steps that matter to a reader; technical events are omitted. */
export function chainOf(events: readonly RunEvent[], answers: readonly Execution[]): Step[] {
  const models = new Set(answers.map((x) => x.nodeId));
  const steps: Step[] = answers.map((x) => {
    const usages = x.calls.flatMap((c) => (c.usage ? [c.usage] : []));
    const from = events[x.from];
    const s = x.substitution;
    const instead = s ? `${s.from.provider}/${s.from.model} lacks ${s.missing.join(", ")}, so ${s.hidden ? "another model" : `${s.to.provider}/${s.to.model}`} was called. ` : "";
    return {
      sequence: x.from, at: from?.timestamp ?? "", nodeId: x.nodeId, words: `${instead}${x.headline}`, tone: x.tone, code: x.code,
      tokens: usages.length === 0 ? undefined : [sum(usages.map((u) => u.inputTokens)), sum(usages.map((u) => u.outputTokens))],
      envelope: decisive(x, columnsOf(x))?.key,
    };
  });
  for (const e of events) {
    const words = wordsOf(e, models);
    if (words) steps.push({ sequence: e.sequence, at: e.timestamp, nodeId: e.nodeId, ...words });
  }
  return steps.toSorted((a, b) => a.sequence - b.sequence);
}

const sum = (all: unknown[]): bigint => all.reduce<bigint>((n, m) => n + (integerOf(m) ?? 0n), 0n);

function wordsOf(e: RunEvent, models: ReadonlySet<string>): Pick<Step, "words" | "tone" | "code"> | undefined {
  const p = record(e.payload);
  const error = record(p.error);
  const because = text(p.reason) ? `: ${text(p.reason)}` : "";
  switch (e.type) {
    case "run.started":
      return { words: "The run started", tone: "note" };
    case "run.completed":
      return { words: "The run completed", tone: "good" };
    case "run.failed":
      return { words: `The run failed${text(error.message) ? `: ${text(error.message)}` : ""}`, tone: "bad", code: text(error.code) };
    case "run.cancelled":
      return { words: `The run was cancelled${because}`, tone: "note" };
    case "run.paused":
      return { words: `The run was paused${because}`, tone: "note" };
    case "run.resumed":
      return { words: "The run was resumed", tone: "note" };
    case "interrupt.requested":
      return { words: `Input was requested (${text(p.kind) ?? "a question"})`, tone: "open" };
    case "interrupt.resolved": {
      const did = text(record(p.resumeValue).action) ?? text(p.outcome);
      return { words: `Answered${text(p.resolvedBy) ? ` by ${text(p.resolvedBy)}` : ""}${did ? `: ${did}` : ""}`, tone: "good" };
    }
    case "cap.breached":
      return { words: `A limit was reached (${text(p.kind) ?? text(p.capKind) ?? "cap"})`, tone: "bad", code: "cap_breached" };
    case "node.failed":
      // The ladder covers nodes with model calls.
      return models.has(e.nodeId ?? "") ? undefined : { words: `Failed${text(error.message) ? `: ${text(error.message)}` : ""}`, tone: "bad", code: text(error.code) };
    case "node.retried":
      return { words: p.reason === "branched" ? "The branch starts within this node, which runs again" : "Retried", tone: "note" };
    case "node.completed":
      return models.has(e.nodeId ?? "") ? undefined : { words: "Completed", tone: "good" };
    case "node.cancelled":
    case "node.skipped":
      return { words: `${e.type === "node.skipped" ? "Skipped" : "Cancelled"}${because}`, tone: "note" };
  }
  return undefined;
}
