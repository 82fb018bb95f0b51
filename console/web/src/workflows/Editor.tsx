// The JSON editor. It lives in a shadow tree: there, CodeMirror's styles are constructed style sheets, which the policy
// of the console (style-src 'self') allows, instead of <style> elements, which it does not.
import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { forceLinting, lintGutter, lintKeymap, linter, type Diagnostic } from "@codemirror/lint";
import { EditorState, type Transaction } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useImperativeHandle, useRef, type ReactNode, type Ref } from "react";
import type { Schema } from "./form";
import { completion, hints, memberValue, placeOf } from "./editing";

/** What is wrong with a document. A syntax error has a place instead of a path. */
export type Finding = { path: string; rule: string; message: string; severity: "error" | "warning"; at?: number };

/** What a page can do with the editor. */
export type EditorHandle = {
  goTo: (finding: Finding) => void;
  /** Sets a member of the document. */
  set: (name: string, value: string) => void;
};

type Props = {
  text: string;
  schema: Schema | undefined;
  kinds: readonly string[];
  label: string;
  /** Checks a document that parses. */
  check: (text: string) => Promise<Finding[]>;
  onChange: (text: string) => void;
  onFindings: (text: string, findings: Finding[]) => void;
  handle: Ref<EditorHandle>;
};

const look = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--page)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--ink-2)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 25%, transparent)" },
  ".cm-matchingBracket": { backgroundColor: "var(--sunken)", outline: "1px solid var(--line-strong)" },
  ".cm-tooltip": { backgroundColor: "var(--page)", color: "var(--ink)", border: "1px solid var(--line-strong)", borderRadius: "6px", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-ink)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.85" },
  ".cm-completionInfo": { padding: "6px 10px", maxWidth: "22rem" },
  ".hint": { padding: "6px 10px", maxWidth: "26rem", fontFamily: "var(--font)" },
  ".cm-diagnostic": { fontFamily: "var(--font)", padding: "4px 8px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--ask)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", color: "var(--ink-2)", border: "0" },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--json-key)" },
  { tag: tags.string, color: "var(--json-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--json-number)" },
  { tag: [tags.separator, tags.squareBracket, tags.brace], color: "var(--ink-2)" },
]);

const parses = jsonParseLinter();
// A pause in typing after which the document is checked, in ms.
const pause = 400;

export default function Editor({ text, schema, kinds, label, check, onChange, onFindings, handle }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const first = useRef(text);
  const latest = useRef({ check, onChange, onFindings });
  useEffect(() => {
    latest.current = { check, onChange, onFindings };
  });
  useEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    const state = EditorState.create({
      doc: first.current,
      extensions: [
        lineNumbers(),
        foldGutter(),
        lintGutter(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        json(),
        linter(
          async (editor) => {
            const written = editor.state.doc.toString();
            const broken = parses(editor);
            const findings = broken.length > 0 ? broken.map((d): Finding => ({ path: "", rule: "syntax", message: d.message, severity: "error", at: d.from })) : await latest.current.check(written);
            latest.current.onFindings(written, findings);
            return broken.length > 0 ? broken : findings.map((f) => diagnostic(editor.state, f));
          },
          { delay: pause },
        ),
        syntaxHighlighting(colours),
        ...(schema ? [completion(schema, kinds), hints(schema)] : []),
        look,
        EditorView.lineWrapping,
        EditorView.domEventHandlers({ beforeinput: typeOver }),
        EditorView.contentAttributes.of({ "aria-label": label }),
        // Tab moves on to the next control, as everywhere.
        keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) latest.current.onChange(update.state.doc.toString());
        }),
      ],
    });
    const editor = new EditorView({ state, parent: root, root });
    view.current = editor;
    forceLinting(editor);
    return () => {
      first.current = editor.state.doc.toString();
      editor.destroy();
      view.current = undefined;
    };
  }, [schema, kinds, label]);
  useImperativeHandle(handle, () => ({
    goTo: (finding) => {
      const editor = view.current;
      if (!editor) return;
      const from = Math.min(finding.at ?? placeOf(editor.state, finding.path).from, editor.state.doc.length);
      editor.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
      editor.focus();
    },
    set: (name, value) => {
      const editor = view.current;
      const range = editor && memberValue(editor.state, name);
      if (range) editor.dispatch({ changes: { ...range, insert: JSON.stringify(value) } });
    },
  }));
  return <div ref={box} className="editor-box" />;
}

// Typing over a selection: a browser would insert an element with a style attribute, which the policy forbids and reports.
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { data, inputType, isComposing } = event;
  const { from, to, empty } = view.state.selection.main;
  if (inputType !== "insertText" || data === null || isComposing || empty) return false;
  event.preventDefault();
  const insert = (): Transaction => view.state.update(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  if (!view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))) view.dispatch(insert());
  return true;
}

function diagnostic(state: EditorState, f: Finding): Diagnostic {
  const { from, to } = placeOf(state, f.path);
  return { from, to, severity: f.severity, message: f.message, source: f.rule };
}
