// What a bar of the timeline says.
import { lookOf } from "../../ui/Status";
import { duration } from "../../ui/time";
import type { Bar } from "./timeline";
import { count, money } from "./usage";

/** Returns the look of a bar's status; bars have two more than nodes. */
export function barLook(status: string): ReturnType<typeof lookOf> {
  if (status === "retried") return { word: "Retried", glyph: "↻", icon: "skip", tone: "ask" };
  if (status === "branched") return { word: "Branched", glyph: "⑂", icon: "fork", tone: "run" };
  return lookOf(status);
}

/** Returns the usage of a bar in words, by name; unknown values are left out. */
export function factsOf({ usage }: Bar): [string, string][] {
  if (!usage) return [];
  const out: [string, string][] = [["Model calls", String(usage.calls)]];
  if (usage.inputTokens !== undefined || usage.outputTokens !== undefined) out.push(["Tokens", `${count(usage.inputTokens)} in, ${count(usage.outputTokens)} out`]);
  if (usage.cost !== undefined) out.push(["Cost", money(usage.cost, usage.currency)]);
  return out;
}

// The mean width of a character, and the padding of a text, in pixels.
const charWidth = 7.2;
const padding = 12;

/** Returns the text on a bar: its node, duration, tokens and cost. What does not fit is left out, beginning with the name, which the lane has, too. */
export function textOn(nodeId: string, bar: Bar, now: number, room: number): string {
  const { usage } = bar;
  const tokens = usage && (usage.inputTokens !== undefined || usage.outputTokens !== undefined) ? Number(usage.inputTokens ?? 0) + Number(usage.outputTokens ?? 0) : undefined;
  const took = duration((bar.to ?? now) - bar.from);
  const spent = tokens === undefined ? [] : [`${tokens.toLocaleString("en")} tok`];
  const paid = usage?.cost === undefined ? [] : [money(usage.cost, usage.currency)];
  const texts = [[nodeId, took, ...spent, ...paid], [took, ...spent, ...paid], [took, ...spent], [took]].map((parts) => parts.join(" · "));
  return texts.find((text) => text.length * charWidth + padding <= room) ?? "";
}
