// The messages of a recorded model call, as an edit of its node.
import { isObject } from "../api/json";
import type { RunEvent } from "../api/model";
import { text } from "../ladder/events";
import type { Execution } from "../ladder/model";
import { sentIn, type Sent } from "../pages/run/panel/sent";
import { templateOf, type Edit, type Members } from "../play/edits";

export type Message = { key: string; role: string; text: string };
export type Conversation = { call: number; sent: Sent };

/** Roles that a conversation may have. */
export const roles = ["system", "user", "assistant", "tool"] as const;

/** The port that holds the conversation of a node. */
const port = "messages";

/** Lists the calls of an execution whose messages are recorded as text. Media is recorded as a digest, so it cannot be sent again. */
export function conversationsOf(execution: Execution, events: readonly RunEvent[]): Conversation[] {
  return execution.calls.flatMap((c) => {
    const { sent } = sentIn(c.prompt === undefined ? undefined : events[c.prompt]);
    return sent && sent.messages.length > 0 && sent.messages.every((m) => typeof m.content === "string") ? [{ call: c.call, sent }] : [];
  });
}

/** The messages of a call. Those that the node was given are in the form in which it was given them, without the fence of untrusted content. */
export function messagesOf({ sent }: Conversation, inputs: Members): Message[] {
  const given = Array.isArray(inputs[port]) ? inputs[port] : [];
  return sent.messages.map((m, i) => {
    const own = given[i];
    return { key: String(i), role: m.role, text: (isObject(own) ? text(own.content) : undefined) ?? String(m.content) };
  });
}

/** The node's own system text; undefined if it comes from a template. The recorded one also has what the host adds. */
export const systemOf = (config: Members): string | undefined => (templateOf(config, "system") === undefined ? (text(config.system) ?? "") : undefined);

/** Returns the edit that sends these messages, instead of the node's prompt. */
export function editOf(config: Members, messages: readonly Message[], system: string | undefined): Edit {
  const changed: Members = {};
  for (const name of ["prompt", "promptId", "userPromptRef"]) if (config[name] !== undefined) changed[name] = null;
  if (system !== undefined && system !== systemOf(config)) changed.system = system === "" ? null : system;
  return {
    ...(Object.keys(changed).length > 0 ? { config: changed } : {}),
    inputs: { [port]: messages.map((m) => ({ role: m.role, content: m.text })) },
  };
}
