// Completion, hints and places of JSON in the editor.
import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { syntaxTree } from "@codemirror/language";
import type { EditorState, Extension } from "@codemirror/state";
import { hoverTooltip } from "@codemirror/view";
import type { SyntaxNode } from "@lezer/common";
import { isObject, parseJson, stringifyJson, type Json } from "../api/json";
import { text } from "../ladder/events";
import { escapeHidden } from "../ui/escape";
import { membersOf, nodeTypesOf, schemasAt, valuesOf } from "./schemaAt";
import { nodesOf, variablesOf } from "./definition";
import type { Schema } from "./form";

type Path = (string | number)[];

/** The path of the innermost value or property that contains a node of the syntax tree. */
export function pathOf(state: EditorState, node: SyntaxNode): Path {
  const path: Path = [];
  for (let at: SyntaxNode | null = node; at; at = at.parent) {
    if (at.name === "Property") {
      const name = at.getChild("PropertyName");
      if (name) path.unshift(unquoted(state, name));
    } else if (at.parent?.name === "Array" && isValue(at)) {
      let index = 0;
      for (let before = at.prevSibling; before; before = before.prevSibling) if (isValue(before)) index++;
      path.unshift(index);
    }
  }
  return path;
}

const isValue = (node: SyntaxNode): boolean => /^(Object|Array|String|Number|True|False|Null|⚠)$/.test(node.name);

function unquoted(state: EditorState, node: SyntaxNode): string {
  const written = state.sliceDoc(node.from, node.to);
  try {
    return String(JSON.parse(written));
  } catch {
    return written.replaceAll('"', "");
  }
}

/** The place of a JSON Pointer: of the member's name, or of the value if it has none. */
export function placeOf(state: EditorState, pointer: string): { from: number; to: number } {
  let here = syntaxTree(state).topNode.firstChild;
  let place = here ? { from: here.from, to: Math.min(here.to, here.from + 1) } : { from: 0, to: 0 };
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    const found: SyntaxNode | undefined = here?.name === "Object" ? here.getChildren("Property").find((p) => unquoted(state, p.getChild("PropertyName") ?? p) === name) : here?.name === "Array" ? childValues(here)[Number(name)] : undefined;
    if (!found) return place;
    const label = found.name === "Property" ? (found.getChild("PropertyName") ?? found) : found;
    place = { from: label.from, to: found.name === "Property" ? label.to : Math.min(found.to, state.doc.lineAt(found.from).to) };
    here = found.name === "Property" ? (childValues(found).at(-1) ?? null) : found;
  }
  return place;
}

/** The place of the value of a member of the document. */
export function memberValue(state: EditorState, name: string): { from: number; to: number } | undefined {
  const property = syntaxTree(state).topNode.firstChild?.getChildren("Property").find((p) => unquoted(state, p.getChild("PropertyName") ?? p) === name);
  const value = property && childValues(property).at(-1);
  return value && { from: value.from, to: value.to };
}

function childValues(node: SyntaxNode): SyntaxNode[] {
  const out: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) if (isValue(child)) out.push(child);
  return out;
}

// What the tree says, as a value: a document that is being typed has errors, and its other parts still say what applies.
function lenient(state: EditorState, node: SyntaxNode | null): Json | undefined {
  switch (node?.name) {
    case "JsonText":
      return lenient(state, node.firstChild);
    case "Object":
      return Object.fromEntries(node.getChildren("Property").flatMap((p) => {
        const value = lenient(state, childValues(p).at(-1) ?? null);
        const name = p.getChild("PropertyName");
        return value === undefined || !name ? [] : [[unquoted(state, name), value]];
      }));
    case "Array":
      return childValues(node).map((v) => lenient(state, v) ?? null);
    case "String":
    case "Number":
    case "True":
    case "False":
    case "Null":
      try {
        return parseJson(state.sliceDoc(node.from, node.to));
      } catch {
        return undefined;
      }
  }
  return undefined;
}

/** Completes names and values from a schema, and the ids of the document. */
export function completion(schema: Schema, kinds: readonly string[]): Extension {
  const types = nodeTypesOf(schema);
  const source = (context: CompletionContext): CompletionResult | null => {
    const { state, pos } = context;
    const node = syntaxTree(state).resolveInner(pos, -1);
    const document = lenient(state, syntaxTree(state).topNode);
    const open = /(Property|Object|Array|PropertyName|String|⚠|True|False|Null|Number)/.test(node.name);
    if (!open) return null;
    const string = node.name === "String" || node.name === "PropertyName" ? node : null;
    const word = context.matchBefore(/[\w.-]*$/);
    const from = string ? string.from : (word?.from ?? pos);
    if (!context.explicit && !string && !word?.text) return null;
    const to = string && string.to >= pos ? string.to : pos;
    const holder = string ?? node;
    const wantsName = holder.name === "PropertyName" || (!string && nearest(holder) === "Object" && !/:\s*[\w".-]*$/.test(state.doc.lineAt(pos).text.slice(0, pos - state.doc.lineAt(pos).from)));
    const path = pathOf(state, holder);
    if (wantsName) return names(state, schema, document, holder.name === "PropertyName" ? path.slice(0, -1) : path, holder, from, to);
    return { from, to, options: values(schema, document, path, types, kinds), validFor: /^"?[\w.-]*"?$/ };
  };
  return autocompletion({ override: [source], icons: false });
}

function nearest(node: SyntaxNode): string {
  for (let at: SyntaxNode | null = node; at; at = at.parent) if (at.name === "Object" || at.name === "Array" || at.name === "Property") return at.name;
  return "";
}

function names(state: EditorState, schema: Schema, document: Json | undefined, path: Path, holder: SyntaxNode, from: number, to: number): CompletionResult {
  let object: SyntaxNode | null = holder;
  while (object && object.name !== "Object") object = object.parent;
  const has = new Set((object?.getChildren("Property") ?? []).filter((p) => !(p.from <= from && to <= p.to)).map((p) => unquoted(state, p.getChild("PropertyName") ?? p)));
  const follows = /^\s*:/.test(state.sliceDoc(to, to + 20));
  return {
    from,
    to,
    validFor: /^"?[\w.-]*"?$/,
    options: membersOf(schemasAt(schema, document, path))
      .filter((m) => !has.has(m.name))
      .map((m): Completion => {
        const value = follows ? "" : `: ${stub(m.schema)}`;
        const made: Completion = { label: `"${m.name}"`, displayLabel: m.name, apply: `"${m.name}"${value}`, boost: m.required ? 1 : 0 };
        if (m.required) made.detail = "required";
        if (m.description) made.info = m.description;
        return made;
      }),
  };
}

function stub(schema: Schema): string {
  if (schema.default !== undefined) return stringifyJson(schema.default);
  switch (schema.type) {
    case "object":
      return "{}";
    case "array":
      return "[]";
    case "string":
      return '""';
    case "boolean":
      return "true";
    case "integer":
    case "number":
      return "0";
  }
  return Array.isArray(schema.enum) ? stringifyJson(schema.enum[0]) : '""';
}

const option = (value: Json, info?: string): Completion => ({ label: stringifyJson(value), ...(info ? { info } : {}) });

function values(schema: Schema, document: Json | undefined, path: Path, types: ReturnType<typeof nodeTypesOf>, kinds: readonly string[]): Completion[] {
  const definition = isObject(document) ? document : {};
  switch (path.at(-1)) {
    case "typeId":
      return types.map((t) => option(t.name, t.description));
    case "sourceNodeId":
    case "targetNodeId":
    case "nodeId":
      return nodesOf(definition).map((n) => option(n.id, n.typeId));
    case "variableName":
      return variablesOf(definition).map((v) => option(v.name, v.description));
    case "envelopeType":
      return kinds.map((k) => option(k));
  }
  if (path.at(-2) === "accepts") return kinds.map((k) => option(k));
  return valuesOf(schemasAt(schema, document, path)).map((v) => option(v));
}

/** Shows the description of a member below the pointer. */
export function hints(schema: Schema): Extension {
  return hoverTooltip((view, pos, side) => {
    const node = syntaxTree(view.state).resolveInner(pos, side);
    if (node.name !== "PropertyName") return null;
    const found = schemasAt(schema, lenient(view.state, syntaxTree(view.state).topNode), pathOf(view.state, node));
    const words = found.map((s) => text(s.description)).find((w) => w !== undefined);
    if (!words) return null;
    return {
      pos: node.from,
      end: node.to,
      above: true,
      create: () => {
        const dom = document.createElement("div");
        dom.className = "hint";
        dom.textContent = escapeHidden(words);
        return { dom };
      },
    };
  });
}
