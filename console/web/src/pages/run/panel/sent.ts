// The messages of a model call, as the host recorded them.
import { isObject, parseJson, type Json } from "../../../api/json";
import type { RunEvent } from "../../../api/model";
import { record, text } from "../../../ladder/events";

export type Message = { role: string; content: Json };
export type Sent = { system?: string | undefined; messages: Message[]; schema?: Json | undefined };

/** Returns what prompt.composed recorded: the messages, or only their hash. */
export function sentIn(event: RunEvent | undefined): { sent?: Sent | undefined; hash?: string | undefined } {
  const p = record(event?.payload);
  const hash = text(p.hash);
  const composed = text(p.composed);
  if (composed === undefined) return { hash };
  try {
    const call = parseJson(composed);
    if (isObject(call) && Array.isArray(call.messages)) {
      const messages = call.messages.filter(isObject).map((m): Message => ({ role: text(m.role) ?? "user", content: m.content ?? "" }));
      return { hash, sent: { system: text(call.system), messages, schema: call.schema } };
    }
  } catch {
    // Earlier releases recorded the text, not the call.
  }
  return { hash, sent: { system: text(p.systemPrompt), messages: [{ role: "user", content: text(p.userPrompt) ?? composed }] } };
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Returns what a call sent that an earlier one did not: in a conversation, each message is shown once. */
export function addedTo(before: Sent | undefined, now: Sent): Sent {
  if (!before) return now;
  let n = 0;
  while (n < before.messages.length && same(before.messages[n], now.messages[n])) n++;
  if (n < before.messages.length) return now;
  // The model's own answer comes first; the panel has shown it.
  const rest = now.messages.slice(n);
  const added = rest[0]?.role === "assistant" ? rest.slice(1) : rest;
  return { messages: added, ...(before.system === now.system ? {} : { system: now.system }), ...(same(before.schema, now.schema) ? {} : { schema: now.schema }) };
}
