import { expect, test } from "vitest";
import type { RunEvent } from "../api/model";
import type { Execution } from "../ladder/model";
import { conversationsOf, editOf, messagesOf, systemOf } from "./messages";

const composed = (messages: object[], system?: string): RunEvent => ({ payload: { composed: JSON.stringify({ system, messages }) } }) as unknown as RunEvent;
const calls = (...prompts: (number | undefined)[]): Execution => ({ calls: prompts.map((prompt, i) => ({ call: i + 1, prompt })) }) as unknown as Execution;

test("only calls whose messages are recorded as text can be edited", () => {
  const events = [composed([{ role: "user", content: "Sort this" }]), composed([{ role: "user", content: [{ type: "image", base64: "[70 bytes, sha256:…]" }] }])];
  expect(conversationsOf(calls(0, 1, undefined), events).map((c) => c.call)).toEqual([1]);
});

test("messages of the port are those that the node was given, not their fenced form", () => {
  const sent = { messages: [{ role: "user", content: "<untrusted>Hello</untrusted>" }, { role: "user", content: "Sort this" }] };
  expect(messagesOf({ call: 1, sent }, { messages: [{ role: "user", content: "Hello" }] }).map((m) => m.text)).toEqual(["Hello", "Sort this"]);
});

test("an edit replaces the prompt by the messages, and the system text if it changed", () => {
  const config = { prompt: "Sort {{mail}}", system: "Be brief." };
  const messages = [{ key: "0", role: "user", text: "Sort {{this}}" }];
  expect(editOf(config, messages, "Be brief.")).toEqual({ config: { prompt: null }, inputs: { messages: [{ role: "user", content: "Sort {{this}}" }] } });
  expect(editOf(config, messages, "Be kind.").config).toEqual({ prompt: null, system: "Be kind." });
  expect(editOf(config, messages, "").config).toEqual({ prompt: null, system: null });
  expect(editOf({}, messages, "").config).toBeUndefined();
  expect(systemOf({ systemPromptRef: "support.system@1" })).toBeUndefined();
});
