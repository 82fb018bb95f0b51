import { stringifyJson, type Json } from "../../api/json";
import { text } from "../../ladder/events";
import type { Definition } from "../../workflows/definition";

/** Returns the next version: the last number, counted up until no version has it. */
export function nextVersion(version: string, taken: readonly string[]): string {
  for (let next = version; ; ) {
    const found = /^(.*?)(\d+)(\D*)$/s.exec(next);
    // A version without a number gets one.
    next = found ? `${found[1]}${BigInt(found[2] as string) + 1n}${found[3]}` : `${next}-1`;
    if (!taken.includes(next)) return next;
  }
}

/** The text of a definition to edit, with its next version. */
export function toEdit(definition: Definition, taken: readonly string[]): string {
  return stringifyJson({ ...definition, version: nextVersion(text(definition.version) ?? "1.0.0", taken) }, 2);
}

const maxId = 128;

/** The text of a copy of a definition. It belongs to the tenant. */
export function toCopy(source: Definition): string {
  const definition = { ...source };
  delete definition.tenantId;
  const id = text(definition.id) ?? "workflow";
  return stringifyJson({ ...definition, id: `${id.slice(0, maxId - 5)}-copy`, name: `${text(definition.name) || id} (copy)`, version: "1.0.0" } satisfies Definition, 2);
}

/** The text of a new workflow that runs: one model call. */
export function toBegin(schema: string): string {
  const begin: { [name: string]: Json } = {
    $schema: schema,
    id: "my-workflow",
    name: "My workflow",
    version: "1.0.0",
    description: "Summarises a text.",
    variables: [{ name: "text", type: "string", required: true, description: "The text to summarise" }],
    nodes: [
      {
        id: "summarise",
        name: "Summarise",
        typeId: "core.ai.callPrompt",
        position: { x: 0, y: 0 },
        config: { prompt: "Summarise this text in one sentence:\n\n{{text}}" },
        inputs: { text: { type: "variable", variableName: "text" } },
      },
    ],
    edges: [],
    triggers: [{ id: "manual", type: "manual", enabled: true }],
    metadata: {},
    settings: {},
  };
  return stringifyJson(begin, 2);
}

// Drafts outlive a reload of the tab, and end with it.
const storage = "waybill.draft:";

export function loadDraft(key: string): string | undefined {
  try {
    return sessionStorage.getItem(storage + key) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepDraft(key: string, draft: string | undefined): void {
  try {
    if (draft === undefined) sessionStorage.removeItem(storage + key);
    else sessionStorage.setItem(storage + key, draft);
  } catch {
    // Without storage, a draft lasts until the page is left.
  }
}
